// Package wire converts between the messages of the contract and the words of the
// runtime, in both directions, and checks what clients and workers send: a Validator
// collects all that is wrong with a request. It calls nothing and keeps nothing.
package wire
