// Package server wires a whole graphd: it reads the options of serve, opens the
// store, connects the packages, serves, and drains. All rules are in the packages
// that it connects.
package server
