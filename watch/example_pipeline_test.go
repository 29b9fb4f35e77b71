// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/watch"
	"github.com/setpoint-io/setpoint/watch/config"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// screen is a terminal that shows of an event what happened to what.
type screen struct{ seen func() }

func (s screen) Write(line []byte) (int, error) {
	e, err := event.Decode(line)
	if err != nil {
		return 0, err
	}
	fmt.Println(e.Verb, e.Kind, e.Key)
	s.seen()
	return len(line), nil
}

// A program of one's own that does what "setpoint watch -f" does: a configuration says what is
// watched and where events go.
func ExamplePipeline() {
	server := fakeapi.New().Serve(object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true})
	for _, namespace := range []string{"shop", "test"} {
		if err := server.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prices"}}); err != nil {
			fmt.Println(err)
			return
		}
	}
	conf, err := config.Parse([]byte(`
apiVersion: setpoint.io/watch/v1
watch: {kinds: [configmaps], initial: true}
sinks: [{name: screen, terminal: {form: json}}]
routes:
  - match: {namespaces: [test]}
    sinks: []
  - sinks: [screen]
`), "watch.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}

	mgr, err := manager.New(server.Config(), manager.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	o := watch.Configured(conf)
	o.Deps = sink.Deps{Stdout: screen{seen: stop}}
	p, err := watch.NewPipeline(mgr, o)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := mgr.Add(p); err != nil {
		fmt.Println(err)
		return
	}
	if err := mgr.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// existing configmaps shop/prices
}
