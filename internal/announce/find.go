// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package announce

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Manager is where a manager serves its pages.
type Manager struct {
	URL         string
	Fingerprint string // of its certificate; empty: the authorities of the kubeconfig vouch for it
	Holder      string // its host
	Lease       object.Key
}

// ErrNone says that no manager has announced itself.
var ErrNone = errors.New("no manager of Setpoint has announced itself in this cluster (it needs the right to patch the Lease kube-system/setpoint-manager, which \"setpoint manager rbac\" has; --manager names one that lacks it)")

// Find returns the manager that was the last to announce itself.
func Find(ctx context.Context, c *client.Client) (Manager, error) {
	lease, err := client.For[*coordinationv1.Lease](c).Get(ctx, Key())
	switch {
	case apierrors.IsNotFound(err):
		return Manager{}, ErrNone
	case err != nil:
		return Manager{}, fmt.Errorf("reading lease %s, which says where the manager is: %w", Key(), err)
	}
	return managerOf(lease)
}

// managerOf reads a Lease.
func managerOf(lease *coordinationv1.Lease) (Manager, error) {
	m := Manager{
		URL: lease.Annotations[annotationURL], Fingerprint: lease.Annotations[annotationFingerprint],
		Lease: object.Key{Namespace: lease.Namespace, Name: lease.Name},
	}
	if lease.Spec.HolderIdentity != nil {
		m.Holder = *lease.Spec.HolderIdentity
	}
	if at, err := url.Parse(m.URL); err != nil || at.Scheme != "https" || at.Host == "" || len(m.Fingerprint) != 64 {
		return Manager{}, fmt.Errorf("lease %s does not say where the manager is: its annotation %s is %q", m.Lease, annotationURL, m.URL)
	}
	return m, nil
}

// mostManagers bounds the managers that FindAll returns.
const mostManagers = 16

// FindAll returns the manager of [Key] and those that have announced themselves on other Leases which the user may list.
// unread says what could not be read. The error is [ErrNone] or that of [Find] if no manager is found.
//
// Both requests are sent at the same time.
func FindAll(ctx context.Context, c *client.Client) (all []Manager, unread []string, err error) {
	var first Manager
	var reading sync.WaitGroup
	reading.Go(func() { first, err = Find(ctx, c) })
	others, unread, listing := listed(ctx, c)
	reading.Wait()
	switch {
	case err == nil:
		all = append(all, first)
	case !errors.Is(err, ErrNone):
		unread = append([]string{err.Error()}, unread...)
	}
	for _, m := range others {
		if len(all) == mostManagers {
			unread = append(unread, fmt.Sprintf("the manager of lease %s: there are more than %d", m.Lease, mostManagers))
			continue
		}
		all = append(all, m)
	}
	if listing != nil {
		unread = append(unread, "managers that announce themselves on other Leases: "+listing.Error())
	}
	if len(all) > 0 {
		return all, unread, nil
	}
	return nil, unread, err
}

// listed returns the managers that have announced themselves on other Leases than that of [Key], and what is wrong with Leases
// that name none.
func listed(ctx context.Context, c *client.Client) (all []Manager, unread []string, err error) {
	leases := object.Resource{Group: coordinationv1.GroupName, Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true}
	_, err = c.List(ctx, leases, client.Selection{Labels: labelAnnounced}, client.ListOptions{}, func(e wire.Encoding, raw []byte) error {
		lease := &coordinationv1.Lease{}
		if err := e.Decode(raw, lease); err != nil {
			return err
		}
		if (object.Key{Namespace: lease.Namespace, Name: lease.Name}) == Key() {
			return nil
		}
		m, err := managerOf(lease)
		if err != nil {
			unread = append(unread, err.Error())
		} else {
			all = append(all, m)
		}
		return nil
	})
	return all, unread, err
}

// patience is how long a manager may take to answer.
const patience = 10 * time.Second

// Client returns a client of the pages, with the client certificate of config. It has no token of config: see the
// package's comment.
func (m Manager) Client(config *rest.Config) (*http.Client, error) {
	if strings.HasPrefix(m.URL, "http://") {
		return &http.Client{Timeout: patience}, nil
	}
	config = rest.CopyConfig(config)
	config.ServerName = ""
	encryption, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate of the kubeconfig: %w", err)
	}
	if encryption == nil {
		encryption = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if m.Fingerprint != "" {
		encryption.InsecureSkipVerify = true
		encryption.VerifyConnection = m.verify
	}
	return &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: encryption, IdleConnTimeout: patience}}, nil
}

// verify accepts the certificate of the fingerprint.
func (m Manager) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 || subtle.ConstantTimeCompare([]byte(fingerprintOf(state.PeerCertificates[0].Raw)), []byte(m.Fingerprint)) != 1 {
		return fmt.Errorf("the certificate is not the one of lease %s: another program has the address, or the manager has begun anew", m.Lease)
	}
	return nil
}
