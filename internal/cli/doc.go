// Package cli is what graphd's client commands do: it speaks gRPC to a server,
// follows streams over restarts, asks at a terminal, and shows what came for
// people or for programs.
//
// It knows the contract in gen and nothing else of the house, so that every
// command proves that the contract is enough. It has a room of its own because
// package main only parses flags; here commands can be tested against any
// server.
package cli
