package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// chatServer plays the chat. It refuses messages to the channel @gone and, once, to @busy.
type chatServer struct {
	*httptest.Server

	arrived chan message
}

func startChat(t *testing.T) *chatServer {
	t.Helper()
	s := &chatServer{arrived: make(chan message, 16)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		switch m.Channel {
		case "@gone":
			http.Error(w, "no such user", http.StatusNotFound)
		case "@busy":
			http.Error(w, "later", http.StatusTooManyRequests)
		default:
			s.arrived <- m
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *chatServer) wait(t *testing.T) message {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	select {
	case m := <-s.arrived:
		return m
	case <-deadline.C:
		t.Fatal("no message")
		return message{}
	}
}

func newEvent(graph, text string, people ...string) *event {
	e := &event{ID: "order-7/q/1", Subject: "q"}
	e.Data.Interrupt.ThreadID, e.Data.Interrupt.Graph, e.Data.Interrupt.Message, e.Data.Interrupt.Assignees = "order-7", graph, text, people
	return e
}

func TestMessagesHaveNoMarkupOfTheQuestion(t *testing.T) {
	s := startChat(t)
	c := &chat{url: s.URL, links: &linker{program: "/nowhere/graphd"}, client: s.Client()}
	if err := c.postEvent(t.Context(), newEvent("re*fund", "<!channel> @all [x](http://evil) `a`\n<http://evil|Answer>")); err != nil {
		t.Fatal(err)
	}
	m := s.wait(t)
	if m.Channel != "" || !strings.Contains(m.Text, "graphd inbox show order-7") {
		t.Error(m)
	}
	for _, markup := range []string{"<", "@all", "](", "`", "re*"} {
		if strings.Contains(m.Text, markup) {
			t.Errorf("%q has %q", m.Text, markup)
		}
	}
}

func TestWhatTheChatRefuses(t *testing.T) {
	s := startChat(t)
	c := &chat{url: s.URL, links: &linker{program: "/nowhere/graphd"}, client: s.Client()}
	if err := c.postEvent(t.Context(), newEvent("refund", "?", "gone", "ana")); err != nil {
		t.Error("a person who does not exist: ", err)
	}
	if m := s.wait(t); m.Channel != "@ana" || strings.Contains(m.Text, "|Answer>") {
		t.Error("a message without a link: ", m)
	}
	if err := c.postEvent(t.Context(), newEvent("refund", "?", "busy")); err == nil || strings.Contains(err.Error(), s.URL) {
		t.Error("a message that is to be sent later: ", err)
	}
	s.Close()
	if err := c.postEvent(t.Context(), newEvent("refund", "?")); err == nil || strings.Contains(err.Error(), s.URL) {
		t.Error("a chat that is away: ", err)
	}
}

func TestUnsignedEventsAreRefused(t *testing.T) {
	s := startChat(t)
	endpoint := startEndpoint(t, s, "graphd")
	resp, err := http.Post(endpoint.URL, "application/cloudevents+json", strings.NewReader(`{"type":"dev.graphd.interrupt.asked"}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || len(s.arrived) > 0 {
		t.Error(resp.StatusCode)
	}
}

func startEndpoint(t *testing.T, s *chatServer, program string) *httptest.Server {
	t.Helper()
	key, err := parseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	c := &chat{url: s.URL, links: &linker{program: program}, client: s.Client()}
	endpoint := httptest.NewServer(&receiver{key: key, send: c.postEvent, now: time.Now})
	t.Cleanup(endpoint.Close)
	return endpoint
}

const graphText = `graph: refund
channels: { decision: {} }
nodes:
  review: { ask: { assignees: ['ana'], message: "'Refund 120?'", update: { decision: answer } } }
edges: [START -> review -> END]
`

// A real graphd asks, the message arrives, and its link answers. GRAPHD_BIN names the program.
func TestAQuestionIsAnsweredFromTheChat(t *testing.T) {
	program := os.Getenv("GRAPHD_BIN")
	if program == "" {
		t.Fatal("GRAPHD_BIN is not set: want the path of a graphd program, as make examples gives it")
	}
	s := startChat(t)
	endpoint := startEndpoint(t, s, program)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "graphs"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"graphs/refund.yaml": graphText,
		"link-keys":          "k1: " + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32)) + "\n",
		"hooks":              "endpoints:\n- { name: chat, url: '" + endpoint.URL + "', secrets: [{ value: " + secret + " }], kinds: [asked] }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	keys := filepath.Join(dir, "keys.yaml")
	starter, linkerToken := createKey(t, program, keys, "starter"), createKey(t, program, keys, "linker")
	address := startGraphd(t, program, "serve", "--listen", "127.0.0.1:0", "--store", "memory", "--log-format", "json", "--graphs", filepath.Join(dir, "graphs"),
		"--api-keys", keys, "--link-keys", filepath.Join(dir, "link-keys"), "--links-address", "127.0.0.1:0",
		"--webhooks", filepath.Join(dir, "hooks"), "--webhook-allow", "127.0.0.1")
	t.Setenv("GRAPHD_SERVER", address)
	t.Setenv("GRAPHD_TOKEN", linkerToken)
	out, err := exec.CommandContext(t.Context(), program, "run", "refund", "--thread", "order-7", "--input", "{}", "--token", starter).CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !isExit(err, &exit, 3) {
		t.Fatalf("%v\n%s", err, out)
	}
	m := s.wait(t)
	found := regexp.MustCompile(`<(http://127\.0\.0\.1:\d+/a/[^|]+)\|Answer>`).FindStringSubmatch(m.Text)
	if m.Channel != "@ana" || found == nil {
		t.Fatal(m)
	}
	page := get(t, found[1])
	seen := regexp.MustCompile(`name="seen" value="([^"]*)"`).FindStringSubmatch(page)
	if seen == nil {
		t.Fatal(page)
	}
	resp, err := http.Post(found[1], "application/x-www-form-urlencoded", strings.NewReader("seen="+seen[1]+"&v=yes"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if after := get(t, found[1]); !strings.Contains(after, "your answer is stored") {
		t.Error(after)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
