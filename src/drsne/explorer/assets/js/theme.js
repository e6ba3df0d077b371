// Light and dark. The page follows the system until the user chooses.

export class Theme {
  constructor(onChange) {
    this.onChange = onChange;
    this.chosen = null;
    this.system = matchMedia("(prefers-color-scheme: dark)");
    this.system.addEventListener("change", () => this.apply());
    this.apply();
  }

  get name() {
    return this.chosen ?? (this.system.matches ? "dark" : "light");
  }

  toggle() {
    this.chosen = this.name === "dark" ? "light" : "dark";
    this.apply();
  }

  apply() {
    document.documentElement.dataset.theme = this.name;
    this.onChange(this.name);
  }

  // A colour of the style sheet.
  colour(variable) {
    return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  }
}
