package agentserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// call is a request that is served, with the services that it calls.
type call struct {
	server    *Server
	w         http.ResponseWriter
	r         *http.Request
	hasBegun  bool     // the head of the answer is written
	hasEffect bool     // the request has begun a run, and its answer says where that is
	gathered  []func() // give back what the parts of the answer hold

	ctx        context.Context //nolint:containedctx // that of this request
	body       []byte
	graphs     graphdv1.GraphServiceClient
	threads    graphdv1.ThreadServiceClient
	registry   graphdv1.RegistryServiceClient
	assistants graphdv1.AssistantServiceClient
	items      graphdv1.ItemServiceClient
	crons      graphdv1.CronServiceClient
}

// serve reads the request, connects it with the services, and handles it.
func (c *call) serve(handle handler) error {
	moveAPIKey(c.r.Header)
	ctx, conn, err := c.server.opts.Door.OpenConnection(c.r)
	if err != nil {
		return err
	}
	body, release, err := c.server.opts.Door.ReadBody(c.r)
	if err != nil {
		return err
	}
	defer release()
	if err := checkText(c.r, body); err != nil {
		return err
	}
	defer c.releaseGathered()
	c.ctx, c.body = ctx, body
	c.graphs, c.threads = graphdv1.NewGraphServiceClient(conn), graphdv1.NewThreadServiceClient(conn)
	c.registry, c.assistants = graphdv1.NewRegistryServiceClient(conn), graphdv1.NewAssistantServiceClient(conn)
	c.items, c.crons = graphdv1.NewItemServiceClient(conn), graphdv1.NewCronServiceClient(conn)
	return handle(c)
}

// checkText refuses a request that is no UTF-8, of which no message of gRPC can be made.
func checkText(r *http.Request, body []byte) error {
	for _, part := range []struct{ name, text string }{
		{"path", r.URL.Path}, {"query", strings.Join(slices.Concat(slices.Collect(maps.Values(r.URL.Query()))...), "")}, {"Last-Event-ID", r.Header.Get("Last-Event-ID")},
	} {
		if !utf8.ValidString(part.text) {
			return invalidField(part.name, "is no UTF-8")
		}
	}
	if !utf8.Valid(body) {
		return newError(http.StatusUnprocessableEntity, "INVALID_PAYLOAD_JSON", "the body is no JSON object: it is no UTF-8")
	}
	return nil
}

// holdGathered counts a part of an answer that is put together from several calls, until it
// is written.
func (c *call) holdGathered(size int) error {
	release, err := c.server.opts.Door.HoldUnread(size)
	if err != nil {
		return newError(http.StatusTooManyRequests, reasonOf(err),
			"the answer is too large beside those that clients have not read: ask for fewer items at once with limit")
	}
	c.gathered = append(c.gathered, release)
	return nil
}

// releaseGathered gives back what gather has counted.
func (c *call) releaseGathered() {
	for _, release := range c.gathered {
		release()
	}
	c.gathered = nil
}

// moveAPIKey makes the header in which clients of LangGraph Server send a key the one of graphd.
func moveAPIKey(h http.Header) {
	if key := h.Get("X-Api-Key"); key != "" && h.Get("Authorization") == "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// decodeBody decodes the JSON object of the request. An empty body is an empty object.
func (c *call) decodeBody(to any) error {
	if len(bytes.TrimSpace(c.body)) == 0 {
		return nil
	}
	err := json.Unmarshal(c.body, to)
	if err == nil {
		return nil
	}
	if wrongType, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return refuseType(wrongType)
	}
	if wrong, ok := errors.AsType[*apiError](err); ok {
		return wrong
	}
	return newError(http.StatusUnprocessableEntity, "INVALID_PAYLOAD_JSON", fmt.Sprintf("the body is no JSON object: %.200s", err.Error()))
}

// refuseType refuses a body, or a field of it, of another type.
func refuseType(wrong *json.UnmarshalTypeError) *apiError {
	format, of := "is a JSON %s: want %s", []any{wrong.Value, nameType(wrong.Type)}
	if wrong.Field == "" {
		return newError(http.StatusUnprocessableEntity, "INVALID_PAYLOAD_JSON", fmt.Sprintf("the body "+format, of...))
	}
	return invalidField(wrong.Field, format, of...)
}

// writeJSON answers with a value.
func (c *call) writeJSON(status int, value any) error {
	text, err := encodeJSON(value)
	if err != nil {
		return fmt.Errorf("encoding an answer: %w", err)
	}
	return c.writeText(status, text)
}

// writeText answers with JSON text.
func (c *call) writeText(status int, text []byte) error {
	c.releaseGathered() // the text has it all
	release, err := c.server.opts.Door.HoldUnread(len(text))
	if err != nil {
		return err
	}
	defer release()
	c.beginAnswer("application/json", status)
	c.extendDeadline()
	_, _ = c.w.Write(text) //nolint:gosec // JSON, never sniffed; on an error the client has left
	return nil
}

// writeNothing answers without a body.
func (c *call) writeNothing() error {
	c.hasBegun = true
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// beginAnswer writes the head of the answer, once.
func (c *call) beginAnswer(contentType string, status int) {
	if c.hasBegun {
		return
	}
	c.hasBegun = true
	c.w.Header().Set("Content-Type", contentType)
	c.w.WriteHeader(status)
}

// extendDeadline gives the client time to take what is written next.
func (c *call) extendDeadline() {
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(c.server.opts.StallTimeout))
}

// encodeJSON encodes a value in one line, without escapes for HTML.
func encodeJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// queryFlag reads a boolean parameter of the URL.
func (c *call) queryFlag(name string) (bool, error) {
	switch given := c.r.URL.Query().Get(name); given {
	case "", "0", "false", "False":
		return false, nil
	case "1", "true", "True":
		return true, nil
	default:
		return false, invalidField(name, "is %.100q: want true or false", given)
	}
}

// queryWords reads the words of a parameter of the URL: repeated, with commas between, or a JSON
// list, as the JavaScript SDK sends one.
func (c *call) queryWords(name string) (words []string, err error) {
	for _, given := range c.r.URL.Query()[name] {
		list := strings.Split(given, ",")
		if strings.HasPrefix(given, "[") {
			if list = nil; json.Unmarshal([]byte(given), &list) != nil {
				return nil, invalidField(name, "is %.100q: want a word, or a JSON list of words", given)
			}
		}
		words = append(words, slices.DeleteFunc(list, func(word string) bool { return word == "" })...)
	}
	return words, nil
}

// queryNumber reads a number from 0 to most of the URL.
func (c *call) queryNumber(name string, standard, most int) (int, error) {
	given := c.r.URL.Query().Get(name)
	if given == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 0 || n > most {
		return 0, invalidField(name, "is %.100q: want a number from 0 to %d", given, most)
	}
	return n, nil
}
