# Grading on any system: the judge, the sandbox and nbgrader in one image.
#   docker build -t edl-labs .
#   docker run --rm -it --security-opt seccomp=unconfined --security-opt apparmor=unconfined -v "$PWD":/course edl-labs doctor --sandbox
# The two options let bubblewrap make its own, stricter, namespaces inside; without them `doctor --sandbox` says what is left.
FROM python:3.11-slim-bookworm
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap libseccomp2 g++ python3-dev make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/edl_labs
COPY pyproject.toml constraints.txt README.md LICENSE CHANGELOG.md nbgrader_config.py ./
COPY labs labs
COPY edl_labs edl_labs
COPY solutions solutions
RUN pip install --constraint constraints.txt --editable '.[instructor,lab,vision,canvas]'
WORKDIR /course
ENTRYPOINT ["edl-labs"]
CMD ["doctor"]
