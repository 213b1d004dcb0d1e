// What is loaded when it is opened for the first time.

export { Palette } from "./palette";
export { SignIn, signInByLink, signOut } from "./sign_in";
export { KeySheet } from "./ui/key_sheet";
