// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// NewSharedIndexInformer returns an informer that reads from a ListerWatcher, as the function of
// client-go with this name does. Each object is encoded for the cache after client-go has decoded
// it, so such an informer saves memory and costs CPU time. [NewInformer] reads the bytes of the
// server. The objects must have a resourceVersion that is a decimal number, and unstructured
// objects need an example with apiVersion and kind.
func NewSharedIndexInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) *Informer {
	return NewSharedIndexInformerWithOptions(lw, example, Options{ResyncPeriod: resync, Indexers: indexers})
}

// NewSharedIndexInformerWithOptions is as [NewSharedIndexInformer], with options. The ListerWatcher
// gets their selectors; it has its namespace itself.
func NewSharedIndexInformerWithOptions(lw cache.ListerWatcher, example runtime.Object, o Options) *Informer {
	if isNil(example) {
		return newInformer(source{err: errors.New("making an informer of a ListerWatcher: no example of its objects given")}, o)
	}
	kind := example.GetObjectKind().GroupVersionKind()
	s := source{example: example, kind: kind}
	unnamed := kind.Version == "" || kind.Kind == ""
	if typ := reflect.TypeOf(example); unnamed && typ.Kind() == reflect.Pointer {
		s.kind = schema.GroupVersionKind{Group: listerGroup, Version: "v1", Kind: typ.Elem().Name()}
	}
	if _, ok := example.(runtime.Unstructured); ok && unnamed {
		s.err = errors.New("making an informer of unstructured objects: the example has no apiVersion and kind")
	}
	s.resource, _ = meta.UnsafeGuessKindToResource(s.kind)
	s.config = &rest.Config{Host: "http://" + listerGroup, Transport: &listerTransport{lw, s.kind, s.resource}}
	return newInformer(s, o)
}

// listerGroup is the group of kinds that have none, in requests that no server receives.
const listerGroup = "lister.invalid"

// listerTransport answers requests for one resource as an API server does, from a ListerWatcher.
type listerTransport struct {
	lister   cache.ListerWatcher
	kind     schema.GroupVersionKind
	resource schema.GroupVersionResource
}

// RoundTrip implements http.RoundTripper.
func (t *listerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	options := metav1.ListOptions{
		ResourceVersion: query.Get("resourceVersion"), Continue: query.Get("continue"),
		LabelSelector: query.Get("labelSelector"), FieldSelector: query.Get("fieldSelector"),
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/"+t.resource.Version):
		return answer(r, &metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: t.kind.GroupVersion().String(),
			APIResources: []metav1.APIResource{{Name: t.resource.Resource, Kind: t.kind.Kind}},
		}, nil)
	case query.Get("sendInitialEvents") == "true":
		return answer(r, nil, apierrors.NewBadRequest("a ListerWatcher lists"))
	case query.Get("watch") == "true":
		return t.watch(r, options)
	}
	list, err := t.list(r.Context(), options)
	return answer(r, list, err)
}

func (t *listerTransport) list(ctx context.Context, o metav1.ListOptions) (any, error) {
	listed, err := cache.ToListerWithContext(t.lister).ListWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	if isNil(listed) {
		return nil, errors.New("the ListerWatcher returned no list and no error")
	}
	about, err := meta.ListAccessor(listed)
	if err != nil {
		return nil, err
	}
	objects, err := meta.ExtractList(listed)
	if err != nil {
		return nil, err
	}
	list := metav1.List{
		TypeMeta: metav1.TypeMeta{Kind: t.kind.Kind + "List", APIVersion: t.kind.GroupVersion().String()},
		ListMeta: metav1.ListMeta{ResourceVersion: about.GetResourceVersion(), Continue: about.GetContinue()},
	}
	for i, o := range objects {
		if isNil(o) {
			return nil, fmt.Errorf("object %d in the list of the ListerWatcher is nil", i)
		}
		list.Items = append(list.Items, runtime.RawExtension{Object: t.named(o)})
	}
	return list, nil
}

// isNil reports whether there is no object: neither a value nor one behind a pointer.
func isNil(o any) bool {
	v := reflect.ValueOf(o)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// named returns an object with the kind of the informer. Typed objects of client-go have no kind, and
// those of a test may have one that the example does not have. An unstructured object keeps its own.
func (t *listerTransport) named(o runtime.Object) runtime.Object {
	kind := o.GetObjectKind().GroupVersionKind()
	if _, ok := o.(runtime.Unstructured); kind == t.kind || ok && !kind.Empty() {
		return o
	}
	o = o.DeepCopyObject()
	o.GetObjectKind().SetGroupVersionKind(t.kind)
	return o
}

func (t *listerTransport) watch(r *http.Request, o metav1.ListOptions) (*http.Response, error) {
	o.AllowWatchBookmarks = true
	o.ResourceVersion = cmp.Or(o.ResourceVersion, "0") // the cache leaves out the version of a list at 0
	w, err := cache.ToWatcherWithContext(t.lister).WatchWithContext(r.Context(), o)
	if err == nil && isNil(w) {
		err = errors.New("the ListerWatcher returned no watch and no error")
	}
	if err != nil {
		return answer(r, nil, err)
	}
	in, out := io.Pipe()
	body := &watchBody{PipeReader: in, ended: make(chan struct{})}
	go t.send(r.Context(), w, body.ended, out)
	return response(r, http.StatusOK, body), nil
}

// watchBody is the body of a watch. Closing it ends the watch.
type watchBody struct {
	*io.PipeReader
	closing sync.Once
	ended   chan struct{}
}

// Close implements io.Closer. It may be called more than once.
func (b *watchBody) Close() error {
	b.closing.Do(func() { close(b.ended) })
	return b.PipeReader.Close()
}

// send writes the events of a watch until it ends.
func (t *listerTransport) send(ctx context.Context, w watch.Interface, ended <-chan struct{}, out *io.PipeWriter) {
	defer func() {
		w.Stop()
		for range w.ResultChan() { // a filter of watches blocks on the event that no reader takes
		}
	}()
	for {
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				_ = out.Close()
				return
			}
			body, err := t.event(event)
			if err == nil {
				_, err = out.Write(body)
			}
			if err != nil {
				_ = out.CloseWithError(err)
				return
			}
		case <-ended:
			return
		case <-ctx.Done():
			_ = out.CloseWithError(ctx.Err())
			return
		}
	}
}

func (t *listerTransport) event(e watch.Event) ([]byte, error) {
	if isNil(e.Object) {
		return nil, fmt.Errorf("an event %s of the ListerWatcher has no object", e.Type)
	}
	if e.Type != watch.Error {
		e.Object = t.named(e.Object)
	}
	return json.Marshal(struct {
		Type   watch.EventType `json:"type"`
		Object runtime.Object  `json:"object"`
	}{e.Type, e.Object})
}

// answer is the answer of a server: a body, or the status of an error.
func answer(r *http.Request, body any, err error) (*http.Response, error) {
	code := http.StatusOK
	if err != nil {
		status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: err.Error()}
		var known apierrors.APIStatus
		if errors.As(err, &known) {
			status = known.Status()
		}
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		code, body = cmp.Or(int(status.Code), http.StatusInternalServerError), status
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding what a ListerWatcher has: %w", err)
	}
	return response(r, code, io.NopCloser(bytes.NewReader(text))), nil
}

func response(r *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: body, ContentLength: -1, Request: r,
	}
}
