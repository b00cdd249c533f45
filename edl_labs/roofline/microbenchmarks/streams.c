/* Streams over vectors that a cache holds, gone over many times in one call: no call is part of what is timed.
 *
 * n counts vectors, a multiple of 8. Eight of everything at once, so that neither the latency of an addition nor the
 * loop's own arithmetic limits. The empty asm ends each pass: the compiler may not merge two.
 */
#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif

typedef float vec __attribute__((vector_size(WIDTH)));
#define EIGHT(STEP) STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
#define END_OF_PASS(P) __asm__ volatile("" : : "r"(P) : "memory")

int edl_width(void) { return WIDTH; }

float edl_read(const vec *a, long n, long passes)
{
    vec sum[8] = {{0}};
    for (long pass = 0; pass < passes; pass++) {
        for (long i = 0; i < n; i += 8) {
#define STEP(k) sum[k] += a[i + k];
            EIGHT(STEP)
#undef STEP
        }
        END_OF_PASS(a);
    }
    float total = 0;
    for (int k = 0; k < 8; k++) total += sum[k][0];
    return total;
}

void edl_copy(vec *to, const vec *a, long n, long passes)
{
    for (long pass = 0; pass < passes; pass++) {
        for (long i = 0; i < n; i += 8) {
#define STEP(k) to[i + k] = -a[i + k];
            EIGHT(STEP)
#undef STEP
        }
        END_OF_PASS(to);
    }
}

void edl_triad(vec *to, const vec *a, const vec *b, long n, long passes)
{
    for (long pass = 0; pass < passes; pass++) {
        for (long i = 0; i < n; i += 8) {
#define STEP(k) to[i + k] = a[i + k] + 2.0f * b[i + k];
            EIGHT(STEP)
#undef STEP
        }
        END_OF_PASS(to);
    }
}
