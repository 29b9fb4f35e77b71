// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// A webhook whose receiver is away for a moment, and who checks signatures.
func Example() {
	key := []byte("a key of 32 bytes or more, really")
	away := true
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if err := sink.Verify(key, r.Header.Get(sink.SignatureHeader), body, time.Now(), 5*time.Minute); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if away {
			away = false
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Println("received", len(body) > 0)
	}))
	defer receiver.Close()

	ctx := context.Background()
	options := sink.Options{
		Webhook:  &sink.Webhook{URL: sink.NewSecret(receiver.URL), SigningKey: sink.SecretRef{File: "/run/secrets/key"}},
		Delivery: sink.Delivery{MinWait: time.Millisecond},
	}
	hook, err := sink.New("hook", options, sink.Deps{
		Secret: func(sink.SecretRef) (string, error) { return string(key), nil }, // reads the file
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	outbox := sink.NewDirect(100)
	runner, err := sink.NewRunner(sink.RunnerOptions{Name: "hook", Sink: hook, Outbox: outbox, Delivery: options.Effective()})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = outbox.Put(ctx, &event.Event{
		ID: "1", Time: time.Now(), Verb: event.Created,
		Kind: event.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true},
		Key:  object.Key{Namespace: "team-a", Name: "web"},
	})
	outbox.Close() // nothing more comes, so Run ends when it has sent what there is
	fmt.Println(err, runner.Run(ctx))
	status := runner.Status()
	fmt.Println("sent", status.Sent, "retried", status.Retried)
	fmt.Println(status.LastError)
	// Output:
	// received true
	// <nil> <nil>
	// sent 1 retried 1
	// the receiver answered 503 Service Unavailable
}
