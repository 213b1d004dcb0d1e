package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
)

// chat posts messages to an incoming webhook of a chat like Mattermost or Slack.
type chat struct {
	url    string // of the incoming webhook: a credential
	links  *linker
	client *http.Client
}

// postTime bounds the posting of a message: graphd waits 10 s.
const postTime = 3 * time.Second

// message is what an incoming webhook takes.
type message struct {
	Channel string `json:"channel,omitempty"` // "" = that of the webhook
	Text    string `json:"text"`
}

// postEvent posts a message to each person whom an event names, with a link for that person
// alone, or else one to the channel of the webhook, without a link: everybody reads that.
func (c *chat) postEvent(ctx context.Context, e *event) error {
	people := findPeople(e)
	if len(people) == 0 {
		return c.postMessage(ctx, message{Text: writeText(e, "")})
	}
	for _, person := range people {
		url, err := c.links.makeLink(ctx, e.Data.Interrupt.ThreadID, e.Subject, person)
		if err != nil {
			slog.Warn("a message without a link", "event", e.ID, "error", err) // the question may be answered already
		}
		if err := c.postMessage(ctx, message{Channel: "@" + person, Text: writeText(e, url)}); err != nil {
			return err
		}
	}
	return nil
}

// findPeople returns the persons whom an entry names, or else its question.
func findPeople(e *event) []string {
	q := &e.Data.Interrupt
	people := slices.Clone(e.Data.Entry.Users)
	if len(people) == 0 {
		people = slices.Concat(q.People.Users, q.Assignees)
	}
	slices.Sort(people)
	return slices.Compact(people)
}

// writeText writes a message in the markup that both chats know.
func writeText(e *event, url string) string {
	q := &e.Data.Interrupt
	text := fmt.Sprintf("*%s* asks:\n>%s\n", escapeText(q.Graph), strings.ReplaceAll(escapeText(strings.TrimSpace(q.Message)), "\n", "\n>"))
	if url != "" {
		return text + "<" + url + "|Answer> (the link is for you alone)"
	}
	return text + "graphd inbox show " + escapeText(q.ThreadID) + " --interrupt " + escapeText(e.Subject)
}

// escapeText takes the markup from a text: links, and words that call everybody.
func escapeText(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@\u200b", "[", "[\u200b", "]", "]\u200b", "`", "'", "*", "∗", "_", "_\u200b").Replace(text)
}

// postMessage posts a message. The error does not show the URL.
func (c *chat) postMessage(ctx context.Context, m message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the URL of the chat is wrong")
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return fmt.Errorf("the chat does not answer")
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
	switch {
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest: // it would be refused again
		slog.Warn("no message for one who was named", "status", resp.StatusCode)
		return nil
	case resp.StatusCode/100 != 2:
		return fmt.Errorf("the chat answers %d", resp.StatusCode)
	}
	return nil
}
