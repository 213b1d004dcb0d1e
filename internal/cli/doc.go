// Package cli is what graphd's client commands do: it speaks gRPC to a server,
// follows streams over restarts, asks at a terminal, and shows what came for
// people or for programs.
//
// It knows the contract in gen and no other package of the server, so that every
// command proves that the contract is enough. It is a package of its own because
// package main only parses flags; here commands can be tested against any server.
package cli
