// Command notify-mail receives the webhooks of a graphd and sends a mail for each question that
// was asked, came to further people, or is still open. It keeps nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8025", "address to receive webhooks on, HOST:PORT")
	relay := flag.String("smtp", "127.0.0.1:25", "mail server, HOST:PORT; SMTP_USER and SMTP_PASSWORD log in")
	from := flag.String("from", "graphd@localhost", "sender of the mails")
	to := flag.String("to", "", "who gets the mails of questions that name no mail address, with commas between")
	program := flag.String("links", "", "the program graphd, to put a link into each mail; GRAPHD_SERVER and GRAPHD_TOKEN name a server and a key with the role linker")
	flag.Parse()
	key, err := parseSecret(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		slog.Error("the variable WEBHOOK_SECRET is wrong", "error", err)
		os.Exit(2)
	}
	m := &mailer{relay: *relay, from: *from, user: os.Getenv("SMTP_USER"), password: os.Getenv("SMTP_PASSWORD")}
	if *to != "" {
		m.others = strings.Split(*to, ",")
	}
	if *program != "" {
		m.links = &linker{program: *program}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: *listen, Handler: &receiver{key: key, send: m.sendMail, now: time.Now}, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })
	slog.Info("serving", "address", *listen)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		slog.Error("stopped", "error", err)
	}
}
