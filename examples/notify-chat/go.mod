module github.com/graphd-dev/graphd/examples/notify-chat

go 1.26.0
