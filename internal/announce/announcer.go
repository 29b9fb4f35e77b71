// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package announce

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Key is where the Lease is.
func Key() object.Key {
	return object.Key{Namespace: metav1.NamespaceSystem, Name: "setpoint-manager"}
}

// Annotations of the Lease.
const (
	annotationURL         = "setpoint.io/serves"      // such as https://10.0.0.5:10257
	annotationFingerprint = "setpoint.io/certificate" // SHA-256 of the certificate, in hexadecimal
)

// labelAnnounced marks the Leases that have the annotations, so that they can be listed.
const labelAnnounced = "setpoint.io/announced"

// Rights returns what an announcer must be allowed to do in the namespace of the Lease of [Key].
func Rights() []rbacv1.PolicyRule { return RightsAt(Key()) }

// RightsAt returns what an announcer must be allowed to do in the namespace of a Lease.
func RightsAt(lease object.Key) []rbacv1.PolicyRule {
	group, leases := []string{coordinationv1.GroupName}, []string{"leases"}
	return []rbacv1.PolicyRule{
		{APIGroups: group, Resources: leases, Verbs: []string{"create"}},
		{APIGroups: group, Resources: leases, ResourceNames: []string{lease.Name}, Verbs: []string{"patch"}},
	}
}

// Announcer is the part of a manager that writes the Lease. It runs while the manager leads.
type Announcer struct {
	client  *client.Client
	lease   object.Key
	address net.Addr
	log     *slog.Logger
}

// New returns an announcer of pages that are served at an address, with TLS.
func New(c *client.Client, served net.Addr, log *slog.Logger) *Announcer {
	return NewAt(c, Key(), served, log)
}

// NewAt returns an announcer that uses another Lease, such as that of the manager's election. It writes metadata alone there.
func NewAt(c *client.Client, lease object.Key, served net.Addr, log *slog.Logger) *Announcer {
	return &Announcer{client: c, lease: lease, address: served, log: log}
}

// Name implements manager.Runnable.
func (a *Announcer) Name() string { return "announcer" }

// checkEvery is how often the announcer looks whether the certificate is still the same, and tries again after a failure.
const checkEvery = time.Minute

// Run writes the Lease, and again when the certificate has changed, until ctx ends. A Lease that cannot be written is no
// reason to stop a manager: users then name the address themselves.
func (a *Announcer) Run(ctx context.Context) error {
	written := ""
	for ctx.Err() == nil {
		fingerprint, err := a.fingerprint(ctx)
		if err == nil && fingerprint != written {
			if err = a.write(ctx, fingerprint); err == nil {
				written = fingerprint
			}
		}
		switch {
		case err == nil || ctx.Err() != nil:
		case apierrors.IsForbidden(err):
			// kube-controller-manager's account lacks the right, and a manager in its place is not to ask for more.
			a.log.Debug("this manager may not announce where it serves its pages; \"setpoint explain\" needs --manager", "lease", a.lease.String(), "lacks", "patch")
			<-ctx.Done()
		default:
			a.log.Warn("cannot announce where this manager serves its pages; \"setpoint explain\" needs --manager until then", "lease", a.lease.String(), "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(checkEvery):
		}
	}
	return nil
}

// fingerprint returns that of the certificate which the manager's port shows.
func (a *Announcer) fingerprint(ctx context.Context) (string, error) {
	host, port, err := net.SplitHostPort(a.address.String())
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // it reads the certificate of its own process
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return "", fmt.Errorf("reading the own certificate: %w", err)
	}
	defer connection.Close() //nolint:errcheck // nothing was written to it
	encrypted, ok := connection.(*tls.Conn)
	if !ok || len(encrypted.ConnectionState().PeerCertificates) == 0 {
		return "", errors.New("reading the own certificate: the port shows none")
	}
	return fingerprintOf(encrypted.ConnectionState().PeerCertificates[0].Raw), nil
}

func fingerprintOf(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
}

// write applies the Lease.
func (a *Announcer) write(ctx context.Context, fingerprint string) error {
	where, err := URL(ctx, a.client, a.address)
	if err != nil {
		return err
	}
	lease := map[string]any{
		"apiVersion": coordinationv1.SchemeGroupVersion.String(), "kind": "Lease",
		"metadata": map[string]any{
			"name": a.lease.Name, "namespace": a.lease.Namespace, "labels": map[string]string{labelAnnounced: "true"},
			"annotations": map[string]string{annotationURL: where, annotationFingerprint: fingerprint},
		},
	}
	if a.lease == Key() { // any other Lease may be that of an election, whose spec belongs to it
		holder, err := os.Hostname()
		if err != nil {
			holder = "setpoint"
		}
		lease["spec"] = map[string]any{"holderIdentity": holder, "renewTime": metav1.NewMicroTime(time.Now())}
	}
	_, err = client.For[*coordinationv1.Lease](a.client).Apply(ctx, a.lease, "setpoint-manager", lease, client.Force())
	return err
}

// URL returns where clients reach a manager that serves its pages at an address. A port on all addresses is reached at the
// one from which this machine reaches the API server of c.
func URL(ctx context.Context, c *client.Client, served net.Addr) (string, error) {
	host, port, err := net.SplitHostPort(served.String())
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		server, err := url.Parse(c.Server())
		if err != nil {
			return "", err
		}
		toward := server.Host
		if server.Port() == "" {
			toward = net.JoinHostPort(server.Hostname(), "443")
		}
		// Without a packet: the kernel chooses the address by its routes.
		connection, err := (&net.Dialer{}).DialContext(ctx, "udp", toward)
		if err != nil {
			return "", fmt.Errorf("finding the own address: %w", err)
		}
		defer connection.Close() //nolint:errcheck // nothing was written to it
		if host, _, err = net.SplitHostPort(connection.LocalAddr().String()); err != nil {
			return "", err
		}
	}
	return "https://" + net.JoinHostPort(host, port), nil
}
