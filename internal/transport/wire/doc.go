// Package wire converts between the messages of the contract and the types of the
// runtime, in both directions, and checks the messages of clients and workers. A
// Validator collects all violations of a request. The package calls no other part
// of the server and keeps no state.
package wire
