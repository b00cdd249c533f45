"""What can be moved in a live picture: found in the page, moved as people move it, and watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

PICTURES = "img.widget-image, svg[role=img]"
_PLACES = f".jp-Cell .jp-OutputArea-output:has(.jupyter-widgets):has({PICTURES})"
_SHOWN = """place => [...place.querySelectorAll('img.widget-image, svg[role=img]')]
    .map(one => [one.src, one.title, one.getAttribute('aria-label')].join(' ')).join(' ')"""
# Another picture than before, with the kernel idle, and still the same one a moment later: what was moved last has come
# to its end, and no late picture of it is taken for the next one's.
_SETTLED = f"""([place, before]) => {{
    const now = ({_SHOWN})(place), last = window.edlSeen
    const isIdle = window.jupyterapp.shell.currentWidget.context.sessionContext.session?.kernel?.status === 'idle'
    if (!isIdle || last?.shown !== now) window.edlSeen = {{shown: now, at: performance.now()}}
    return now !== before && isIdle && last?.shown === now && performance.now() - last.at > 300
}}"""


@dataclass(frozen=True)
class Explorer:
    """One live picture with its controls, wherever in the page it stands."""

    page: Any
    place: Any

    def shown(self) -> str:
        """What the picture shows: its bytes' address and its words."""
        return str(self.place.evaluate(_SHOWN))

    def after(self, act: Callable[[], Any], what: str) -> None:
        """Does something to it and waits until another picture has come to stay; AssertionError where none does."""
        before = self.shown()
        act()
        try:
            self.page.wait_for_function(_SETTLED, arg=[self.place.element_handle(), before], timeout=60_000)
        except Exception as error:  # playwright's own, which is not imported here
            raise AssertionError(f"nothing changes when one moves {what}") from error

    def move_all(self) -> list[str]:
        """Moves each control once or more; what they are called. AssertionError where one does nothing."""
        return [*self._buttons(), *self._boxes(), *self._menus(), *self._sliders()]

    def _each(self, selector: str) -> Iterator[Any]:
        found = self.place.locator(selector)
        for number in range(found.count()):
            if (one := found.nth(number)).is_visible():
                one.scroll_into_view_if_needed()
                yield one

    def _buttons(self) -> Iterator[str]:
        for button in self._each("button.jupyter-button:not(.mod-active)"):
            name = button.get_attribute("title") or button.inner_text()
            self.after(button.click, name)
            yield name

    def _boxes(self) -> Iterator[str]:
        for box in self._each("input[type=number]"):
            other = "0.3" if abs(float(box.input_value() or 0) - 0.3) > 0.1 else "0.6"
            self.after(lambda box=box, other=other: (box.fill(other), box.press("Enter")), "a number")
            yield f"a box for {other}"
        for box in self._each("input[type=checkbox]"):
            self.after(box.click, "a box to tick")
            yield "a box to tick"

    def _menus(self) -> Iterator[str]:
        for menu in self._each("select"):
            chosen, count = menu.evaluate("menu => [menu.selectedIndex, menu.options.length]")
            self.after(lambda menu=menu, index=(chosen + 1) % count: menu.select_option(index=index), "a menu")
            yield f"a menu of {count}"

    def _sliders(self) -> Iterator[str]:
        for slider in self._each(".widget-slider"):
            yield self._slider(slider)

    def _slider(self, slider: Any) -> str:
        """Drags with the mouse to the farther side, goes back some steps by a key, listens to what it says."""
        label, handle = slider.locator(".widget-label").inner_text(), slider.locator(".noUi-handle")
        at, rail = handle.bounding_box(), slider.locator(".noUi-base").bounding_box()
        from_x, y = at["x"] + at["width"] / 2, at["y"] + at["height"] / 2
        is_left = from_x < rail["x"] + rail["width"] / 2
        to_x = rail["x"] + rail["width"] * (0.8 if is_left else 0.2)
        mouse = self.page.mouse
        mouse.move(from_x, y)
        mouse.down()
        self.after(lambda: mouse.move(to_x, y, steps=3), f"{label} with the mouse down")
        mouse.up()
        handle.focus()
        # Jupyter takes the arrow keys for itself while no cell is being written in; these it leaves to sliders.
        self.after(lambda: self.page.keyboard.press("PageDown" if is_left else "PageUp"), f"{label} by a key")
        readout = slider.locator(".widget-readout").inner_text()
        spoken = [handle.get_attribute(f"aria-{part}") for part in ("label", "valuetext")]
        assert [label, readout] == spoken, f"{label}: a screen reader hears {spoken}"
        return label


def explorers(page: Any) -> list[Explorer]:
    """Every live picture of the page, in order."""
    places = page.locator(_PLACES)
    return [Explorer(page, places.nth(number)) for number in range(places.count())]
