// Package cli implements graphd's client commands: it calls a server over gRPC,
// follows streams over restarts, asks at a terminal, and shows results to people or
// programs.
//
// It uses the contract in gen and no other package of the server, so that every
// command proves that the contract is enough. It is not part of package main, which
// only parses flags, so that tests can run commands against any server.
package cli
