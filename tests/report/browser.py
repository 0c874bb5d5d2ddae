"""A headless Chromium for pages of reports."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

_INSTALL = "is not installed: apt-get install chromium chromium-driver, as scripts/setup.sh does"


class Page:
    """What tests do with a page: look, click, type."""

    def __init__(self, driver: webdriver.Chrome):
        self.driver = driver

    def open(self, path: Path, view: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(f"file://{path}#{view}")
        self.wait(lambda: self.driver.execute_script("return document.body.dataset.ready"))

    def wait(self, condition):
        return WebDriverWait(self.driver, 20, poll_frequency=0.02).until(lambda driver: condition())

    def all(self, selector: str) -> list:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str):
        return self.wait(lambda: next(iter(self.all(selector)), None))

    def text(self, selector: str) -> str:
        return self.one(selector).get_attribute("textContent")

    def waits_for(self, selector: str, text: str) -> None:
        self.wait(lambda: any(text in (found.get_attribute("textContent") or "") for found in self.all(selector)))

    def click(self, selector: str, text: str = "") -> None:
        found = self.wait(lambda: [e for e in self.all(selector) if text in (e.get_attribute("textContent") or "")])
        found[0].click()

    def keys(self, *keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(*keys)

    def nodes(self) -> set[str]:
        """The names of the nodes and boxes of the graph that are seen."""
        return set(
            self.driver.execute_script("""
            return [...document.querySelectorAll(".graph [data-id] text:not(.sign):not(.detail)")]
              .map((text) => text.firstChild.data)""")
        )

    def scheme(self, name: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def colours(self) -> tuple[str, str]:
        return tuple(
            self.driver.execute_script("""
                const style = getComputedStyle(document.body);
                return [style.backgroundColor, style.color]""")
        )

    def picture(self, path: Path) -> None:
        self.driver.get_screenshot_as_file(str(path))

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]


@contextlib.contextmanager
def browser() -> Iterator[Page]:
    """A browser with an empty profile and no network."""
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    assert all(programs), f"chromium or chromedriver {_INSTALL}"
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1440,900"):
        options.add_argument(option)
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(programs[1]))
    try:
        yield Page(driver)
    finally:
        driver.quit()
