// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/connections"
)

// Authentication says how a server knows its users, beside by bearer tokens. The zero value is
// by tokens alone.
//
// It is what k8s.io/apiserver calls delegated authentication and authorization, with the same
// meaning: a user with a certificate needs no token, and the API server decides what the user
// may see in either case.
type Authentication struct {
	// ClientCAFile has certificates of authorities, in PEM. A client with a certificate
	// of theirs is the user of its common name, and in the groups of its organizations.
	// The file is read again for requests; if it cannot be read, the last content stays.
	ClientCAFile string

	// RequestHeader says which proxies may name their users in headers.
	RequestHeader RequestHeader

	// Lookup says whether the authorities that API servers publish take the place of empty
	// CAFiles. They are in the ConfigMap extension-apiserver-authentication in kube-system,
	// which is watched.
	Lookup Lookup

	// TokenReviews is how to reach the API server that knows tokens and has the ConfigMap,
	// and SubjectAccessReviews the one that says who may see what. nil is [Options.Config].
	TokenReviews, SubjectAccessReviews *rest.Config

	// Remember is how long their answers count.
	Remember Remember
}

// RequestHeader says which proxies are believed, and in which headers they name their users.
// The zero value is none.
type RequestHeader struct {
	// CAFile has certificates of authorities, in PEM, read as Authentication.ClientCAFile.
	// A client with a certificate of theirs is such a proxy.
	CAFile string

	// AllowedNames are the common names of proxies. Without any, all are believed.
	AllowedNames []string

	// UsernameHeaders, UIDHeaders and GroupHeaders name headers, of which the first that
	// is there tells the user and his UID, and all together the groups. ExtraHeaderPrefixes
	// are what headers begin with whose rest is the key of an extra value.
	UsernameHeaders, UIDHeaders, GroupHeaders, ExtraHeaderPrefixes []string
}

// Lookup says whether certificate authorities are read from the cluster.
type Lookup int

const (
	NoLookup   Lookup = iota // nothing
	TryLookup                // what is there; without it, certificates are not believed
	NeedLookup               // what is there; without it when the process starts, Run ends with an error
)

// newAccess returns what decides which user may see a page.
func newAccess(o *Options, log *slog.Logger) (*access, error) {
	how := &o.Authentication
	a := &access{log: log, reviews: newReviews(), objects: newReviews()}
	a.reviews.lasts, a.objects.lasts = how.Remember, how.Remember
	for _, own := range []struct {
		config *rest.Config
		client **client.Client
	}{{how.TokenReviews, &a.tokens}, {how.SubjectAccessReviews, &a.rights}} {
		c, err := client.New(connections.Apart(cmp.Or(own.config, o.Config)), o.ClientOptions...)
		if err != nil {
			return nil, err
		}
		*own.client = c
	}
	c := &a.certificates
	c.headers = func() (RequestHeader, error) { return how.RequestHeader, nil }
	var err error
	if how.ClientCAFile != "" {
		if c.clients, err = fileBundle(how.ClientCAFile, log); err != nil {
			return nil, fmt.Errorf("certificate authorities of clients: %w", err)
		}
	}
	if how.RequestHeader.CAFile != "" {
		if c.proxies, err = fileBundle(how.RequestHeader.CAFile, log); err != nil {
			return nil, fmt.Errorf("certificate authorities of proxies: %w", err)
		}
	}
	if how.Lookup == NoLookup || c.clients != nil && c.proxies != nil {
		return a, nil
	}
	p := newPublished(a.tokens, log, how.Lookup == NeedLookup)
	c.published = p
	if c.clients == nil {
		c.clients = &bundle{read: func() ([]byte, error) { return p.value(clientCAKey) }, log: log}
	}
	if c.proxies == nil {
		c.proxies = &bundle{read: func() ([]byte, error) { return p.value(proxyCAKey) }, log: log}
		c.headers = p.headers
	}
	return a, nil
}

// LookUp watches what [Authentication.Lookup] names until end is called, so that certificates
// count as soon as it is read. The error says what is missing where it is needed. It is called
// when the API server can be reached, and returns at once if nothing is to be looked up.
func (s *Server) LookUp(ctx context.Context) (end func(), err error) {
	if s.access == nil || s.access.certificates.published == nil {
		return func() {}, nil
	}
	p := s.access.certificates.published
	if err := p.check(ctx); err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var task sync.WaitGroup
	task.Go(func() { _ = p.factory.Run(watching) }) // an informer that fails says so and tries again
	return func() { stop(); task.Wait() }, nil
}
