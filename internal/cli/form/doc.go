// Package form tells a person how to answer a question: what its schema demands, an
// answer that fits, and the arguments of the command that gives it.
package form
