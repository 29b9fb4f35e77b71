// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
)

// Authentication says how those are known who ask a manager about itself, beside by bearer
// tokens. The zero value knows them by nothing else.
//
// It is what k8s.io/apiserver calls delegated authentication and authorization, with the
// same meaning: who shows a certificate needs no token, and what somebody may see is the API
// server's decision in either case.
type Authentication struct {
	// ClientCAFile has certificates of authorities, in PEM. A client with a certificate
	// of theirs is the user of its common name, and in the groups of its organizations.
	// The file is read again for requests; if it cannot be read, the last content stays.
	ClientCAFile string

	// RequestHeader says which proxies are believed that name somebody in headers.
	RequestHeader RequestHeader

	// Lookup says whether the CAFiles that are empty are made up for by what API servers
	// publish: the ConfigMap extension-apiserver-authentication in kube-system. It is
	// watched.
	Lookup Lookup

	// TokenReviews is how to reach the API server that knows tokens and has the ConfigMap,
	// and SubjectAccessReviews the one that says who may see what. nil is the manager's own.
	TokenReviews, SubjectAccessReviews *rest.Config

	// Remember is how long their answers count.
	Remember Remember
}

// RequestHeader says which proxies are believed, and how they say for whom they ask. The
// zero value is none.
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

// Lookup says what is read from the cluster about who may be believed.
type Lookup int

const (
	NoLookup   Lookup = iota // nothing
	TryLookup                // what is there; without it, certificates are not believed
	NeedLookup               // what is there; that it cannot be read when the manager starts ends Run with an error
)

// newAccess returns who decides about those who ask.
func (m *Manager) newAccess(how Authentication) (*access, error) {
	a := &access{log: m.log, reviews: newReviews()}
	a.reviews.lasts = how.Remember
	for _, own := range []struct {
		config *rest.Config
		client **client.Client
	}{{how.TokenReviews, &a.tokens}, {how.SubjectAccessReviews, &a.rights}} {
		c, err := client.New(apart(cmp.Or(own.config, m.config)), m.options...)
		if err != nil {
			return nil, err
		}
		*own.client = c
	}
	c := &a.certificates
	c.headers = func() (RequestHeader, error) { return how.RequestHeader, nil }
	var err error
	if how.ClientCAFile != "" {
		if c.clients, err = fileBundle(how.ClientCAFile, m.log); err != nil {
			return nil, fmt.Errorf("certificate authorities of clients: %w", err)
		}
	}
	if how.RequestHeader.CAFile != "" {
		if c.proxies, err = fileBundle(how.RequestHeader.CAFile, m.log); err != nil {
			return nil, fmt.Errorf("certificate authorities of proxies: %w", err)
		}
	}
	if how.Lookup == NoLookup || c.clients != nil && c.proxies != nil {
		return a, nil
	}
	p := newPublished(a.tokens, m.log, how.Lookup == NeedLookup)
	c.published = p
	if c.clients == nil {
		c.clients = &bundle{read: func() ([]byte, error) { return p.value(clientCAKey) }, log: m.log}
	}
	if c.proxies == nil {
		c.proxies = &bundle{read: func() ([]byte, error) { return p.value(proxyCAKey) }, log: m.log}
		c.headers = p.headers
	}
	return a, nil
}

// lookUp keeps what is read from the cluster current until end is called. The error is that
// what must be there is not.
func (m *Manager) lookUp(ctx context.Context) (end func(), err error) {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var tasks sync.WaitGroup
	end = func() { stop(); tasks.Wait() }
	for _, s := range m.servings {
		if s.access == nil || s.access.certificates.published == nil {
			continue
		}
		p := s.access.certificates.published
		if err := p.check(ctx); err != nil {
			end()
			return nil, err
		}
		tasks.Go(func() { _ = p.factory.Run(watching) }) // an informer that fails says so and tries again
	}
	return end, nil
}
