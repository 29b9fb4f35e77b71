// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
)

// The page takes each name that --controllers takes.
func TestTheDebugPageTakesTheNamesThatTheCommandTakes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	chosen := registry.Known()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	m, run, err := newManager(&rest.Config{Host: "http://127.0.0.1:1"}, chosen, controllers.Cluster{}, together, log,
		manager.Serve(l, serving.Options{Plain: true}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	page := func(name string) string {
		response, err := http.Get("http://" + l.Addr().String() + "/debug/controllers?controller=" + url.QueryEscape(name))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if len(run) == 0 {
		t.Error("no controller runs")
	}
	for _, d := range run {
		for _, name := range []string{d.Name, d.Alias} {
			if text := page(name); !strings.Contains(text, "\n"+d.Name) {
				t.Errorf("?controller=%s does not show %s: %s", name, d.Name, text)
			}
		}
	}
	if text := page("deploymnet"); !strings.Contains(text, `did you mean "deployment"?`) {
		t.Error(text)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
