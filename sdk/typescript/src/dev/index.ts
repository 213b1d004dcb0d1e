export { type DevOptions, DevServer, dev } from "./dev_server.js";
export { findProgram, MissingProgramError } from "./find_program.js";
