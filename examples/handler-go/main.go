// Command handler-go takes orders over HTTP, and asks each customer before an order is paid. The
// engine is in its process, the orders in a file: the process may be killed at any time.
//
//	go run . --db orders.db --listen 127.0.0.1:8080
//	curl -d '{"session": "ana", "text": "a lamp"}' http://127.0.0.1:8080/
//	curl -d '{"session": "ana", "text": "I confirm"}' http://127.0.0.1:8080/
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/graphd-dev/graphd"
)

func main() {
	file := flag.String("db", "orders.db", "file with the orders")
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *file, *listen)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "handler-go:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file, listen string) error {
	engine, err := graphd.Open(ctx, graphd.SQLite(file), newOrders())
	if err != nil {
		return err
	}
	at, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return errors.Join(err, engine.Close(ctx))
	}
	fmt.Fprintln(os.Stdout, "serving http://"+at.Addr().String())
	s := &http.Server{Handler: &handler{engine}, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(at) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		last, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = s.Shutdown(last)
	}
	return errors.Join(err, engine.Close(context.Background()))
}
