// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/object"
)

// The namespaces of the scripts about the operator, whose names are those of the scripts.
const (
	hotLoopScript  = "hot-loop"
	turnsScript    = "turns"
	ownWriteScript = "own-write"
)

// startOperator runs a user's operator until the test ends: a program on the library whose controllers have mistakes. It reaches
// the API server by a proxy that delays the watch of Secrets from the first Secret on that the controller keeper creates.
func startOperator(t *testing.T, cluster *controlplanetest.Cluster) {
	t.Helper()
	config := &rest.Config{Host: lagging(t, cluster.Config), QPS: -1}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.New(config, manager.Serve(l, serving.Options{Authentication: serving.Authentication{Lookup: serving.NeedLookup}}), manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	configs, secrets := cache.Informer[*corev1.ConfigMap](m), cache.Informer[*corev1.Secret](m)
	patch := func(ctx context.Context, key object.Key, change map[string]any) (controller.Result, error) {
		p, err := client.MergePatch(change)
		if err == nil {
			_, err = client.For[*corev1.ConfigMap](m.Client()).Patch(ctx, key, p)
		}
		return controller.Result{}, err
	}
	in := func(namespace string) controller.Predicate[*corev1.ConfigMap] {
		return func(e cache.Event[*corev1.ConfigMap]) bool {
			return e.New.Exists() && e.New.Key().Namespace == namespace && e.New.Labels().Get("operator") != ""
		}
	}
	sets := func(side string) *controller.Controller { // sets data.side, as another one does with another value
		return controller.New(side, func(ctx context.Context, req controller.Request) (controller.Result, error) {
			config, err := configs.Get(req.Key)
			if err != nil || config.Data["side"] == side {
				return controller.Result{}, unlessGone(err)
			}
			return patch(ctx, req.Key, map[string]any{"data": map[string]string{"side": side}})
		}, controller.Delayed(100*time.Millisecond, controller.For(configs, in(turnsScript))))
	}
	for _, c := range []*controller.Controller{
		sets("left"), sets("right"),
		// The label is there already, so the write changes nothing, and the next run does the same.
		controller.New("polisher", func(ctx context.Context, req controller.Request) (controller.Result, error) {
			_, err := patch(ctx, req.Key, map[string]any{"metadata": map[string]any{"labels": map[string]string{"operator": "yes"}}})
			return controller.Result{After: 50 * time.Millisecond}, unlessGone(err)
		}, controller.For(configs, in(hotLoopScript))),
		controller.New("keeper", func(ctx context.Context, req controller.Request) (controller.Result, error) {
			if _, err := secrets.Get(req.Key); err == nil {
				return controller.Result{}, nil
			}
			_, err := client.For[*corev1.Secret](m.Client()).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: req.Key.Namespace, Name: req.Key.Name}})
			return controller.Result{}, err
		}, controller.For(configs, in(ownWriteScript)), controller.Reads(secrets)),
	} {
		if err := m.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Announce(object.Key{Namespace: metav1.NamespaceDefault, Name: "operator"}, l.Addr()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the operator: %v", err)
		}
	})
	controlplanetest.Eventually(t, "the operator has announced itself", func() bool {
		out, err := cluster.Kubectl("get", "lease", "operator", "-n", "default", "-o", "jsonpath={.metadata.annotations}")
		return err == nil && strings.Contains(out, "setpoint.io/serves")
	})
}

// unlessGone returns an error, unless it says that the object does not exist.
func unlessGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// lagging starts a proxy of an API server, and returns its address. From the first Secret on that is created by way of it, in the
// namespace of ownWriteScript, it passes on nothing that watches of Secrets receive.
func lagging(t *testing.T, config *rest.Config) string {
	t.Helper()
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	lags, end := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(lags) })
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: server.Scheme, Host: server.Host}) },
		Transport:     transport,
		FlushInterval: -1, // at once
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Path == "/api/v1/secrets" && r.Request.URL.Query().Get("watch") == "true" {
				r.Body = laggingBody{r.Body, lags, end}
			}
			return nil
		},
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/"+ownWriteScript+"/secrets") {
			begin()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		close(end)
		front.CloseClientConnections()
		front.Close()
	})
	return front.URL
}

// laggingBody is a watch that delivers nothing once lags is closed, until end is.
type laggingBody struct {
	io.ReadCloser
	lags, end chan struct{}
}

func (b laggingBody) Read(to []byte) (int, error) {
	n, err := b.ReadCloser.Read(to)
	select {
	case <-b.lags:
		<-b.end
		return 0, io.ErrUnexpectedEOF
	default:
		return n, err
	}
}
