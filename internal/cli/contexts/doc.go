// Package contexts keeps the servers that a person calls by name, with what each of
// them wants of its callers, in a file of the person.
package contexts
