// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/asn1"
)

// The groups, name and extra key that k8s.io/apiserver gives to users.
// Source: k8s.io/apiserver/pkg/authentication/user.
const (
	authenticated   = "system:authenticated"
	unauthenticated = "system:unauthenticated"
	anonymous       = "system:anonymous"
	credentialIDKey = "authentication.kubernetes.io/credential-id"
)

// user is an authenticated user.
type user struct {
	Name, UID string
	Groups    []string
	Extra     map[string]authorizationv1.ExtraValue
}

// digest returns bytes that differ between users, and between users and tokens.
func (i *user) digest() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "user %q %q %q %q", i.Name, i.UID, i.Groups, i.Extra)) // maps in the order of their keys
}

// certificates authenticates users by the client certificates of their connections.
type certificates struct {
	clients   *bundle                       // nil: no certificate counts
	proxies   *bundle                       // nil: no certificate counts
	headers   func() (RequestHeader, error) // of proxies
	published *published                    // the source of the three; nil: nothing is looked up
}

// any reports whether a client certificate can count.
func (c *certificates) any() bool { return c.clients != nil || c.proxies != nil }

// identify returns the user of a request. It is nil without a certificate, and nil with an error
// where the certificate does not count.
func (c *certificates) identify(r *http.Request) (*user, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	// The user that a proxy names comes first, as upstream: else all users would be the proxy.
	who, doubt := c.byProxy(r)
	if who == nil {
		who, doubt = c.byCertificate(r.TLS.PeerCertificates)
	}
	if who == nil {
		return nil, doubt
	}
	if !slices.Contains(who.Groups, unauthenticated) && !slices.Contains(who.Groups, authenticated) && who.Name != anonymous {
		who.Groups = append(slices.Clone(who.Groups), authenticated)
	}
	return who, nil
}

var errNoAuthority = errors.New("no certificate authority is known")

// byCertificate returns the user that a client certificate names.
// Source: k8s.io/apiserver/pkg/authentication/request/x509, CommonNameUserConversion.
func (c *certificates) byCertificate(chain []*x509.Certificate) (*user, error) {
	if err := verify(chain, c.clients); err != nil {
		return nil, err
	}
	leaf := chain[0]
	if leaf.Subject.CommonName == "" {
		return nil, errors.New("it names no user: its common name is empty")
	}
	uid, err := uidOf(leaf)
	if err != nil {
		return nil, err
	}
	fingerprint := sha256.Sum256(leaf.Raw)
	return &user{
		Name: leaf.Subject.CommonName, UID: uid, Groups: leaf.Subject.Organization,
		Extra: map[string]authorizationv1.ExtraValue{credentialIDKey: {"X509SHA256=" + hex.EncodeToString(fingerprint[:])}},
	}, nil
}

// uidOf returns the UID that a certificate may hold, once.
func uidOf(c *x509.Certificate) (string, error) {
	uid := ""
	for _, name := range c.Subject.Names {
		if !name.Type.Equal(asn1.X509UID()) {
			continue
		}
		text, ok := name.Value.(string)
		if !ok || text == "" || uid != "" {
			return "", errors.New("its UID is not one text")
		}
		uid = text
	}
	return uid, nil
}

// byProxy returns the user that a proxy names in headers. It is nil where the client is no proxy,
// or names no user.
// Source: k8s.io/apiserver/pkg/authentication/request/headerrequest.
func (c *certificates) byProxy(r *http.Request) (*user, error) {
	chain := r.TLS.PeerCertificates
	if err := verify(chain, c.proxies); err != nil {
		return nil, err
	}
	headers, err := c.headers()
	if err != nil {
		return nil, err
	}
	if len(headers.AllowedNames) > 0 && !slices.Contains(headers.AllowedNames, chain[0].Subject.CommonName) {
		return nil, fmt.Errorf("%q is not among the names of proxies", chain[0].Subject.CommonName)
	}
	who := &user{Name: first(r.Header, headers.UsernameHeaders), UID: first(r.Header, headers.UIDHeaders), Extra: map[string]authorizationv1.ExtraValue{}}
	if who.Name == "" {
		return nil, nil
	}
	for _, name := range headers.GroupHeaders {
		for _, group := range r.Header.Values(name) {
			if group != "" {
				who.Groups = append(who.Groups, group)
			}
		}
	}
	for name, values := range r.Header {
		for _, prefix := range headers.ExtraHeaderPrefixes {
			if len(name) < len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
				continue
			}
			key := strings.ToLower(name[len(prefix):])
			if plain, err := url.PathUnescape(key); err == nil {
				key = plain
			}
			who.Extra[key] = append(who.Extra[key], values...)
		}
	}
	return who, nil
}

// first returns the value of the first header that is set.
func first(h http.Header, names []string) string {
	for _, name := range names {
		if value := h.Get(name); value != "" {
			return value
		}
	}
	return ""
}

// verify returns an error unless an authority signed the first certificate of a chain, for a
// client. The others of the chain are intermediates.
func verify(chain []*x509.Certificate, authorities *bundle) error {
	if authorities == nil {
		return errNoAuthority
	}
	o := x509.VerifyOptions{Roots: authorities.roots(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, Intermediates: x509.NewCertPool()}
	if o.Roots == nil { // the system's would be taken
		return errNoAuthority
	}
	for _, between := range chain[1:] {
		o.Intermediates.AddCert(between)
	}
	_, err := chain[0].Verify(o)
	return err
}
