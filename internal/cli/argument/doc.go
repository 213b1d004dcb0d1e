// Package argument parses arguments of the command line into parts of requests.
package argument
