// Package argument reads words of the command line as parts of a request.
package argument
