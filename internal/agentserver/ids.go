package agentserver

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// idLength is that of a UUID as text.
const idLength = 36

// parseID returns a UUID as graphd has it: in lower case, with dashes.
func parseID(field, given string) (string, error) {
	if !isID(given) {
		return "", newError(http.StatusUnprocessableEntity, "INVALID_FIELD", fmt.Sprintf("the %s %.100q is no UUID: want one like %s", field, given, "01234567-89ab-4cde-8f01-23456789abcd")).ofField(field)
	}
	return strings.ToLower(given), nil
}

// isID reports whether a text is a UUID with dashes.
func isID(text string) bool {
	_, err := uuid.Parse(text)
	return err == nil && len(text) == idLength
}

// pathID returns the UUID in the path of the request.
func (c *call) pathID(field string) (string, error) { return parseID(field, c.r.PathValue(field)) }

// defaultAssistant returns the id of the assistant of a graph, as LangGraph Server computes it.
func defaultAssistant(graph string) string {
	return uuid.NewSHA1(assistantSpace(), []byte(graph)).String()
}

// assistantSpace returns the space of names in which the ids of default assistants are.
func assistantSpace() uuid.UUID { return uuid.MustParse("6ba7b821-9dad-11d1-80b4-00c04fd430c8") }

// dashID returns an id of 32 hex digits as a UUID, and another one as it is.
func dashID(id string) string {
	if parsed, err := uuid.Parse(id); err == nil && len(id) == 32 {
		return parsed.String()
	}
	return id
}

// undashID is the reverse of dashID.
func undashID(id string) string {
	if parsed, err := uuid.Parse(id); err == nil && len(id) == idLength {
		return strings.ReplaceAll(parsed.String(), "-", "")
	}
	return id
}

// isQuestionID reports whether a key of an answer names a question: 32 hex digits.
func isQuestionID(key string) bool {
	_, err := uuid.Parse(key)
	return err == nil && len(key) == 32
}

// formatNamespace returns the namespace of a subgraph as clients have it: "node:task|node:task".
func formatNamespace(path []string) string {
	shown := make([]string, len(path))
	for i, element := range path {
		node, task, _ := strings.Cut(element, ":")
		shown[i] = node
		if task != "" {
			shown[i] += ":" + dashID(task)
		}
	}
	return strings.Join(shown, "|")
}

// parseNamespace is the reverse of formatNamespace.
func parseNamespace(given string) []string {
	if given == "" {
		return nil
	}
	path := strings.Split(given, "|")
	for i, element := range path {
		node, task, hasTask := strings.Cut(element, ":")
		if hasTask {
			path[i] = node + ":" + undashID(task)
		}
	}
	return path
}
