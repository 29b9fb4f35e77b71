// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/setpoint-io/setpoint/manager/serving"
)

// A program without a manager serves its health and a page of its own.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	log := slog.New(slog.DiscardHandler)
	server, err := serving.New(listener, serving.Options{Plain: true, Log: log})
	if err != nil {
		fmt.Println(err)
		return
	}
	server.Health("/readyz", "whether it works", serving.NewHealth(log).Handler("readyz",
		serving.Check{Name: "ping", Ask: func() error { return nil }},
		serving.Check{Name: "queue", Ask: func() error { return errors.New("it is full") }},
	))
	server.Page("/debug/queue", "what waits", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		serving.WritePage(w, func(page io.Writer) { fmt.Fprintln(page, "3 messages wait") })
	}))
	done := make(chan error)
	go func() { done <- server.Run(ctx) }()

	for _, path := range []string{"/", "/debug/queue", "/readyz", "/readyz/ping"} {
		answer, err := http.Get("http://" + listener.Addr().String() + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		fmt.Printf("%s %d %v\n%s\n", path, answer.StatusCode, err, text)
	}
	stop()
	fmt.Println(<-done)
	// Output:
	// / 200 <nil>
	// /readyz       whether it works
	// /debug/queue  what waits
	//
	// /debug/queue 200 <nil>
	// 3 messages wait
	//
	// /readyz 500 <nil>
	// [+]ping ok
	// [-]queue failed: reason withheld
	// readyz check failed
	//
	// /readyz/ping 200 <nil>
	// ok
	// <nil>
}
