// The theme calls its search button "Search" and shows "Search Ctrl + K": who speaks to a page says what they see.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("button.search-button-field, button.search-button__button")) {
    if (button.textContent.trim()) button.removeAttribute("aria-label");
  }
});
