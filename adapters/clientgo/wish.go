// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// wish is what a generated informer asks a server for.
type wish struct {
	resource       schema.GroupVersionResource
	namespace      string
	labels, fields string
	indexers       cache.Indexers
}

// wishOf finds out what an informer asks for. A generated constructor keeps its namespace and its
// selectors in a function, so the informer that it makes is run until it has sent its first
// request, to nowhere.
func wishOf(build internalinterfaces.NewInformerFunc, resync time.Duration) (wish, error) {
	requests := make(requestRecorder, 1)
	clientset, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://" + listerGroup}, &http.Client{Transport: requests})
	if err != nil {
		return wish{}, err
	}
	informer := build(clientset, resync)
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return wish{}, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	defer func() { cancel(); <-done }()
	select {
	case request := <-requests:
		w, err := readWish(request)
		w.indexers = informer.GetIndexer().GetIndexers()
		return w, err
	case <-informer.HasSyncedChecker().Done():
		return wish{}, errNoRequest
	case <-time.After(wishPatience):
		return wish{}, errNoRequest
	}
}

// wishPatience is how long an informer may take to send its first request, which takes it less
// than a millisecond.
const wishPatience = 10 * time.Second

var errNoRequest = errors.New("it sends no request with the client that it gets")

// requestRecorder takes the first request that is sent, and answers none.
type requestRecorder chan *url.URL

// RoundTrip implements http.RoundTripper.
func (c requestRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case c <- r.URL:
	default:
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// readWish reads the path and the selectors of a list or a watch.
func readWish(u *url.URL) (wish, error) {
	w := wish{labels: u.Query().Get("labelSelector"), fields: u.Query().Get("fieldSelector")}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		w.resource.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		w.resource.Group, w.resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return w, fmt.Errorf("its request to %s is no list and no watch", u.Path)
	}
	if len(parts) == 3 && parts[0] == "namespaces" {
		w.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) != 1 {
		return w, fmt.Errorf("its request to %s is no list and no watch", u.Path)
	}
	w.resource.Resource = parts[0]
	return w, nil
}
