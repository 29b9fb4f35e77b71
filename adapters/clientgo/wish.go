// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"runtime"
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

// wishOf finds out what the informers of a constructor ask for. A generated constructor keeps its
// namespace and its selectors in a function, so an informer that it makes for a client to nowhere is
// run until it has sent its first request. built returns the informer for the client of the factory.
// One that exists already is not run: it could not be started again.
func wishOf(build internalinterfaces.NewInformerFunc, built func() cache.SharedIndexInformer, resync time.Duration) (wish, error) {
	fresh := isGenerated(build)
	if !fresh && isOnSetpoint(built()) {
		return wish{}, errOnSetpoint
	}
	requests := make(requestRecorder, 1)
	clientset, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: "http://" + listerGroup}, &http.Client{Transport: requests})
	if err != nil {
		return wish{}, err
	}
	informer := build(clientset, resync)
	// The indexers are compared, as one informer may be in a new wrapper each time.
	if !fresh && informer.GetIndexer() == built().GetIndexer() {
		return wish{}, errExists
	}
	return tryOut(informer, requests)
}

// isGenerated reports whether client-go has generated a constructor. Each call of such a one makes an
// informer, and registers it with the name of the factory: a second call logs an error.
func isGenerated(build internalinterfaces.NewInformerFunc) bool {
	code := runtime.FuncForPC(reflect.ValueOf(build).Pointer())
	return code != nil && strings.HasPrefix(code.Name(), "k8s.io/client-go/informers/")
}

// isOnSetpoint reports whether an informer is one of this package, which may be in a wrapper.
func isOnSetpoint(informer cache.SharedIndexInformer) bool {
	_, is := informer.GetIndexer().(*indexer)
	return is
}

// tryOut runs an informer until it has sent its first request. It does not wait for a source that
// goes on when its context has ended.
func tryOut(informer cache.SharedIndexInformer, requests requestRecorder) (wish, error) {
	if err := informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return wish{}, err
	}
	patience, end := context.WithTimeout(context.Background(), wishPatience)
	defer end()
	ctx, cancel := context.WithCancel(patience)
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	defer func() {
		cancel()
		select {
		case <-done:
		case <-patience.Done():
		}
	}()
	select {
	case request := <-requests:
		w, err := readWish(request)
		w.indexers = informer.GetIndexer().GetIndexers()
		return w, err
	case <-informer.HasSyncedChecker().Done():
	case <-patience.Done():
	}
	return wish{}, errNoRequest
}

// wishPatience is how long an informer may take to send its first request, which takes it less
// than a millisecond. The rest is for a process that gets little of a processor. An informer of
// another source that does not answer holds its factory up for as long.
const wishPatience = time.Second

// The reasons to take an informer as it is.
var (
	errOnSetpoint = errors.New("it is on the cache of Setpoint already")
	errExists     = errors.New("its constructor returns an informer that exists already")
	errNoRequest  = errors.New("it sends no request with the client that it gets")
)

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
