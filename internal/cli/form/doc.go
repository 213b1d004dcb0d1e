// Package form describes to a person how to answer a question: the demands of its
// schema, an example that fits, and the arguments of the command that answers.
package form
