package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// delivered is a mail that arrived.
type delivered struct {
	to   []string
	mail *mail.Message
	text string
}

// mailServer is a mail server that keeps what it gets.
type mailServer struct{ arrived chan delivered }

func (s *mailServer) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{server: s}, nil }

type session struct {
	server *mailServer
	to     []string
}

func (s *session) Mail(string, *smtp.MailOptions) error { return nil }

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	switch to {
	case "nobody@example.com":
		return &smtp.SMTPError{Code: 550, Message: "no such person"}
	case "full@example.com":
		return &smtp.SMTPError{Code: 452, Message: "the mailbox is full"}
	}
	s.to = append(s.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		return err
	}
	s.server.arrived <- delivered{to: s.to, mail: m, text: string(text)}
	return nil
}

func (s *session) Reset()        { s.to = nil }
func (s *session) Logout() error { return nil }

// startMail starts a mail server, and an endpoint that sends mails through it.
func startMail(t *testing.T) (*mailServer, *httptest.Server) {
	t.Helper()
	return startMailWith(t, nil)
}

// startMailWith is startMail with links in the mails.
func startMailWith(t *testing.T, links *linker) (*mailServer, *httptest.Server) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &mailServer{arrived: make(chan delivered, 16)}
	server := smtp.NewServer(s)
	server.Domain = "localhost"
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	key, err := parseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	m := &mailer{relay: l.Addr().String(), from: "graphd@example.com", others: []string{"team@example.com"}, links: links}
	endpoint := httptest.NewServer(&receiver{key: key, send: m.sendMail, now: time.Now})
	t.Cleanup(endpoint.Close)
	return s, endpoint
}

func (s *mailServer) wait(t *testing.T) delivered {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	select {
	case m := <-s.arrived:
		return m
	case <-deadline.C:
		t.Fatal("no mail")
		return delivered{}
	}
}

// post sends an event, and returns the status.
func post(t *testing.T, to, body string, at time.Time) int {
	t.Helper()
	key, err := parseSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "id-1.%d.%s", at.Unix(), body)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("webhook-id", "id-1")
	req.Header.Set("webhook-timestamp", fmt.Sprint(at.Unix()))
	req.Header.Set("webhook-signature", "v1,AAAA v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func eventText(kind, assignees, message string) string {
	users := ""
	if kind == "reminded" {
		users = `"users":["eva@example.com"]`
	}
	return `{"id":"order-7/q/1","type":"dev.graphd.interrupt.` + kind + `","subject":"q","time":"2026-11-27T08:00:00Z","data":{"interrupt":{` +
		`"threadId":"order-7","graph":"refund","message":"` + message + `","assignees":[` + assignees + `]},"entry":{` + users + `}}}`
}

func TestAQuestionIsAMail(t *testing.T) {
	s, endpoint := startMail(t)
	body := eventText("asked", `"ana@example.com", "ben"`, `Prüfung: Refund 120?\r\nBcc: evil@example.com`)
	for range 2 { // an event that comes again is the same mail
		if got := post(t, endpoint.URL, body, time.Now()); got != http.StatusNoContent {
			t.Fatal(got)
		}
		m := s.wait(t)
		if !slices.Equal(m.to, []string{"ana@example.com"}) {
			t.Error(m.to)
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(m.mail.Header.Get("Subject"))
		if err != nil || subject != "[refund] Prüfung: Refund 120?" {
			t.Errorf("%q %v", subject, err)
		}
		if m.mail.Header.Get("Bcc") != "" {
			t.Error("a message became a header")
		}
		if got := m.mail.Header.Get("Message-ID"); got != messageID("order-7/q/1") {
			t.Error(got)
		}
		if !strings.Contains(m.text, "graphd inbox show order-7 --interrupt q") {
			t.Error(m.text)
		}
	}
}

func TestAReminderIsForThoseWhomItNames(t *testing.T) {
	s, endpoint := startMail(t)
	if got := post(t, endpoint.URL, eventText("reminded", `"ana@example.com"`, "Refund 120?"), time.Now()); got != http.StatusNoContent {
		t.Fatal(got)
	}
	if m := s.wait(t); !slices.Equal(m.to, []string{"eva@example.com"}) {
		t.Error(m.to)
	}
}

func TestWhatIsNoMail(t *testing.T) {
	s, endpoint := startMail(t)
	if got := post(t, endpoint.URL, eventText("answered", "", "?"), time.Now()); got != http.StatusNoContent {
		t.Error(got)
	}
	if got := post(t, endpoint.URL, eventText("asked", "", "?"), time.Now().Add(-time.Hour)); got != http.StatusUnauthorized {
		t.Error("an old request: ", got)
	}
	resp, err := http.Post(endpoint.URL, "application/cloudevents+json", strings.NewReader(eventText("asked", "", "?")))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Error("no signature: ", resp.StatusCode)
	}
	if got := post(t, endpoint.URL, eventText("asked", `"nobody@example.com"`, "?"), time.Now()); got != http.StatusNoContent {
		t.Error("a person who does not exist: ", got)
	}
	if got := post(t, endpoint.URL, eventText("asked", `"full@example.com"`, "?"), time.Now()); got != http.StatusServiceUnavailable {
		t.Error("a mail that is to be sent later: ", got)
	}
	if len(s.arrived) > 0 {
		t.Error("a mail arrived")
	}
}

const graphText = `graph: refund
channels: { decision: {} }
nodes:
  review: { ask: { message: "'Refund 120?'", update: { decision: answer } } }
edges: [START -> review -> END]
`

// A real graphd asks, and the mail arrives. GRAPHD_BIN names the program.
func TestAQuestionOfAServerIsAMail(t *testing.T) {
	program := os.Getenv("GRAPHD_BIN")
	if program == "" {
		t.Fatal("GRAPHD_BIN is not set: want the path of a graphd program, as make examples gives it")
	}
	s, endpoint := startMail(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"refund.yaml": graphText,
		"hooks":       "endpoints:\n- { name: mail, url: '" + endpoint.URL + "', secrets: [{ value: " + secret + " }], kinds: [asked] }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := startGraphd(t, program, "serve", "--listen", "127.0.0.1:0", "--store", "memory", "--log-format", "json",
		"--graphs", dir, "--webhooks", filepath.Join(dir, "hooks"), "--webhook-allow", "127.0.0.1")
	out, err := exec.CommandContext(t.Context(), program, "run", "refund", "--thread", "order-7", "--input", "{}", "--server", address).CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !isExit(err, &exit, 3) {
		t.Fatalf("%v\n%s", err, out)
	}
	if m := s.wait(t); !slices.Equal(m.to, []string{"team@example.com"}) || m.mail.Header.Get("Subject") != "[refund] Refund 120?" {
		t.Error(m.to, m.text)
	}
}

// With links each person gets a mail, with a link for that person.
func TestEachPersonGetsALink(t *testing.T) {
	program := os.Getenv("GRAPHD_BIN")
	if program == "" {
		t.Fatal("GRAPHD_BIN is not set: want the path of a graphd program, as make examples gives it")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "graphs"), 0o700); err != nil {
		t.Fatal(err)
	}
	linkKey := "k1: " + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32)) + "\n"
	graph := strings.Replace(graphText, "ask: {", "ask: { assignees: ['ana@example.com', 'ben@example.com'],", 1)
	for name, text := range map[string]string{"graphs/refund.yaml": graph, "link-keys": linkKey} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	keys := filepath.Join(dir, "keys.yaml")
	starter, linkerToken := createKey(t, program, keys, "starter"), createKey(t, program, keys, "linker")
	hooks := filepath.Join(dir, "hooks")
	s, endpoint := startMailWith(t, &linker{program: program})
	if err := os.WriteFile(hooks, []byte("endpoints:\n- { name: mail, url: '"+endpoint.URL+"', secrets: [{ value: "+secret+" }], kinds: [asked] }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := startGraphd(t, program, "serve", "--listen", "127.0.0.1:0", "--store", "memory", "--log-format", "json", "--graphs", filepath.Join(dir, "graphs"),
		"--api-keys", keys, "--link-keys", filepath.Join(dir, "link-keys"), "--links-address", "127.0.0.1:0", "--webhooks", hooks, "--webhook-allow", "127.0.0.1")
	t.Setenv("GRAPHD_SERVER", address)
	t.Setenv("GRAPHD_TOKEN", linkerToken)
	out, err := exec.CommandContext(t.Context(), program, "run", "refund", "--thread", "order-7", "--input", "{}", "--token", starter).CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !isExit(err, &exit, 3) {
		t.Fatalf("%v\n%s", err, out)
	}
	seen := map[string]bool{}
	for range 2 {
		m := s.wait(t)
		seen[m.to[0]] = true
		body, err := io.ReadAll(quotedprintable.NewReader(m.mail.Body))
		if err != nil {
			t.Fatal(err)
		}
		url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/a/\S+`).FindString(string(body))
		resp, err := http.Get(url)
		if err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		page, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK || !bytes.Contains(page, []byte("for "+m.to[0])) {
			t.Errorf("%d %s", resp.StatusCode, page)
		}
	}
	if !seen["ana@example.com"] || !seen["ben@example.com"] {
		t.Error(seen)
	}
}
