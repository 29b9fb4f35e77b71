// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
)

// Clientset is any generated clientset: that of client-go, and those of custom kinds. D is the
// type that its discovery client has, which depends on the version of the generator.
type Clientset[D Connection] interface{ Discovery() D }

// Connection is a client of a server.
type Connection interface{ RESTClient() rest.Interface }

// errFake is the error of a clientset that has no connection.
var errFake = errors.New("the clientset has no connection to a server: is it a fake one?")

// configOf returns a configuration with the server and the transport of a clientset, and so with
// its credentials.
func configOf[D Connection](c Clientset[D]) (*rest.Config, error) {
	d := c.Discovery()
	if any(d) == nil {
		return nil, errFake
	}
	connection, ok := d.RESTClient().(*rest.RESTClient)
	if !ok || connection == nil {
		return nil, errFake
	}
	base := *connection.Get().URL()
	base.RawQuery = ""
	transport := http.DefaultTransport
	if connection.Client != nil && connection.Client.Transport != nil {
		transport = connection.Client.Transport
	}
	return &rest.Config{Host: base.String(), Transport: withoutAgent{transport}}, nil
}

// withoutAgent removes the User-Agent header, which the client of the cache sets. The transport of a
// clientset adds that of the clientset to requests that have none.
type withoutAgent struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper, which must not change the request.
func (t withoutAgent) RoundTrip(r *http.Request) (*http.Response, error) {
	changed := *r
	changed.Header = r.Header.Clone()
	changed.Header.Del("User-Agent")
	return t.next.RoundTrip(&changed)
}

// kindOf asks the server for the kind of a resource.
func kindOf(ctx context.Context, c *client.Client, r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	path := "/apis/" + r.Group + "/" + r.Version
	if r.Group == "" {
		path = "/api/" + r.Version
	}
	answer, err := c.Request(http.MethodGet).Path(path).Do(ctx)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("looking up the kind of %s: %w", r, err)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(answer.Body, &list); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("looking up the kind of %s: reading %s: %w", r, path, err)
	}
	for _, served := range list.APIResources {
		if served.Name == r.Resource {
			return r.GroupVersion().WithKind(served.Kind), nil
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf("looking up the kind: %w", apierrors.NewNotFound(r.GroupResource(), ""))
}
