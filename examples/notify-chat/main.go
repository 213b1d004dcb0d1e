// Command notify-chat receives the webhooks of a graphd and posts a message to a chat for each
// question that was asked, came to further people, or is still open, with a link by which the
// person answers. It keeps nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8026", "address to receive webhooks on, HOST:PORT")
	program := flag.String("graphd", "graphd", "the program that makes links; GRAPHD_SERVER and GRAPHD_TOKEN name a server and a key with the role linker")
	flag.Parse()
	key, err := parseSecret(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		slog.Error("the variable WEBHOOK_SECRET is wrong", "error", err)
		os.Exit(2)
	}
	c := &chat{url: os.Getenv("CHAT_URL"), links: &linker{program: *program}, client: &http.Client{}}
	if c.url == "" {
		slog.Error("the variable CHAT_URL must have the URL of an incoming webhook")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: *listen, Handler: &receiver{key: key, send: c.postEvent, now: time.Now}, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })
	slog.Info("serving", "address", *listen)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		slog.Error("stopped", "error", err)
	}
}
