// What mdBook's pages lack for screen readers and keyboards, by the rules of axe; `ci/book.sh axe` checks every page.
const set = (selector, attributes) => {
  for (const element of document.querySelectorAll(selector)) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  }
};
// mdBook's button for the sidebar is a label of a hidden checkbox, and no key reaches it.
const label = document.querySelector("label#mdbook-sidebar-toggle");
const box = document.getElementById(label?.getAttribute("for") ?? "");
if (label && box) {
  const button = document.createElement("button");
  for (const { name, value } of label.attributes) if (name !== "for") button.setAttribute(name, value);
  button.type = "button";
  button.append(...label.childNodes);
  const show = () => button.setAttribute("aria-expanded", String(box.checked));
  button.addEventListener("click", () => box.click());
  box.addEventListener("change", show);
  label.replaceWith(button);
  show();
}
set("#mdbook-menu-bar", { role: "banner" });
set("#mdbook-searchbar", { "aria-label": "Search this book" });
set(".nav-wide-wrapper", { "aria-label": "Next and previous page, at the sides" });
// Wide output scrolls, so keys have to reach it.
set("pre > code", { tabindex: "0" });
