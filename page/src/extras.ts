// What is loaded when it is opened for the first time.

export { Palette } from "./palette";
export { SignIn } from "./sign_in";
export { KeySheet } from "./ui/key_sheet";
