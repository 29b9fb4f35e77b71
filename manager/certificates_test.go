// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/wire"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.PrivateKey
	pem  string
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert: c, key: key, pem: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))}
}

// sign returns a certificate of somebody, which change may change.
func (a *authority) sign(t *testing.T, who pkix.Name, change func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: who, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(template)
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// caller is who asks: with a certificate, if there is one, and headers.
type caller struct {
	cert    *tls.Certificate
	headers map[string]string
}

// get asks over a connection of its own.
func (c caller) get(t *testing.T, url string) (int, string) {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the certificate is self-made
	if c.cert != nil {
		config.Certificates = []tls.Certificate{*c.cert}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range c.headers {
		r.Header.Set(name, value)
	}
	response, err := (&http.Transport{TLSClientConfig: config, DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// judge is an API server that lets the group monitoring see everything, and says of whom it
// was asked.
type judge struct {
	*fakeapi.Server
	asked  chan authorizationv1.SubjectAccessReviewSpec
	decide func(authorizationv1.SubjectAccessReviewSpec) bool // nil: by the group
}

func (j *judge) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/subjectaccessreviews") {
		return j.Server.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_, kind, raw, err := wire.Protobuf.Open(body)
	if err != nil {
		return nil, err
	}
	review := &authorizationv1.SubjectAccessReview{}
	if err := wire.Protobuf.Decode(raw, review); err != nil {
		return nil, err
	}
	j.asked <- review.Spec
	for _, group := range review.Spec.Groups {
		review.Status.Allowed = review.Status.Allowed || group == "monitoring"
	}
	if j.decide != nil {
		review.Status.Allowed = j.decide(review.Spec)
	}
	if raw, err = review.Marshal(); err != nil {
		return nil, err
	}
	out, err := wire.Seal("authorization.k8s.io/v1", kind, raw)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusCreated, Request: r, Header: http.Header{"Content-Type": {wire.Protobuf.MediaType()}},
		Body: io.NopCloser(strings.NewReader(string(out))),
	}, nil
}

var configMaps = object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}

// judged runs a manager that knows people as said, and returns where its metrics are, its
// API server's ConfigMaps, and of whom it asks.
func judged(t *testing.T, how serving.Authentication, published ...*corev1.ConfigMap) (url string, maps *fakeapi.Resource, asked <-chan authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	server := fakeapi.New(podsResource)
	maps = server.Serve(configMaps)
	for _, configMap := range published {
		if err := maps.Add(configMap); err != nil {
			t.Fatal(err)
		}
	}
	j := &judge{Server: server, asked: make(chan authorizationv1.SubjectAccessReviewSpec, 100)}
	l := listen(t)
	run(t, broken(t, &rest.Config{Host: "http://in-memory", Transport: j}, manager.Serve(l, serving.Options{Authentication: how})))
	base := "https://" + l.Addr().String()
	waitFor(t, "the manager to be ready", func() bool { code, _ := ask(t, base+"/readyz", ""); return code == http.StatusOK })
	return base + "/metrics", maps, j.asked
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var watcher = pkix.Name{CommonName: "prometheus", Organization: []string{"monitoring"}}

func TestWhoShowsACertificateOfAKnownAuthorityIsItsUser(t *testing.T) {
	ours, other := newAuthority(t, "ours"), newAuthority(t, "other")
	url, _, asked := judged(t, serving.Authentication{ClientCAFile: file(t, ours.pem)})
	for _, test := range []struct {
		name string
		cert *tls.Certificate
		code int
		says string
	}{
		{"one that may", ours.sign(t, watcher, nil), http.StatusOK, "workqueue_depth"},
		{"one that may not", ours.sign(t, pkix.Name{CommonName: "jane"}, nil), http.StatusForbidden, `User "jane" cannot get path "/metrics"`},
		{"of another authority", other.sign(t, watcher, nil), http.StatusUnauthorized, "the client certificate is not accepted: x509: certificate signed by unknown authority"},
		{"expired", ours.sign(t, watcher, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }), http.StatusUnauthorized, "has expired"},
		{"for servers", ours.sign(t, watcher, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), http.StatusUnauthorized, "incompatible key usage"},
		{"of nobody", ours.sign(t, pkix.Name{Organization: []string{"monitoring"}}, nil), http.StatusUnauthorized, "its common name is empty"},
		{"none", nil, http.StatusUnauthorized, "a bearer token of the cluster is needed, such as kubectl create token gives, or a client certificate"},
	} {
		if code, text := (caller{cert: test.cert}).get(t, url); code != test.code || !strings.Contains(text, test.says) {
			t.Errorf("%s: %d %.300s, want %d with %q", test.name, code, text, test.code, test.says)
		}
	}
	who := <-asked
	if who.User != "prometheus" || fmt.Sprint(who.Groups) != "[monitoring system:authenticated]" || !strings.HasPrefix(fmt.Sprint(who.Extra["authentication.kubernetes.io/credential-id"]), "[X509SHA256=") {
		t.Errorf("asked of %+v", who)
	}
	// Headers are for proxies, of which none is known.
	if code, text := (caller{ours.sign(t, pkix.Name{CommonName: "jane"}, nil), map[string]string{"X-Remote-User": "x", "X-Remote-Group": "monitoring"}}).get(t, url); code != http.StatusForbidden {
		t.Errorf("with somebody else's group in a header: %d %s", code, text)
	}
}

func TestAnAuthorityThatChangesOnDiskIsNoticedAndOneThatCannotBeReadLeavesTheOneBefore(t *testing.T) {
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	path := file(t, first.pem)
	url, _, _ := judged(t, serving.Authentication{ClientCAFile: path})
	old, young := caller{cert: first.sign(t, watcher, nil)}, caller{cert: second.sign(t, watcher, nil)}
	holds := func(when string, of caller, want int) {
		t.Helper()
		if code, text := of.get(t, url); code != want {
			t.Errorf("%s: %d %.200s, want %d", when, code, text, want)
		}
	}
	holds("at first, the old one", old, http.StatusOK)
	holds("at first, the new one", young, http.StatusUnauthorized)
	for _, broken := range []string{"", "no certificate"} {
		if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		holds("while the file is broken", old, http.StatusOK)
	}
	if err := os.WriteFile(path, []byte(second.pem), 0o600); err != nil {
		t.Fatal(err)
	}
	holds("after the change, the new one", young, http.StatusOK)
	holds("after the change, the old one", old, http.StatusUnauthorized)
}

func TestAProxyOfItsAuthorityAsksForWhomItNames(t *testing.T) {
	front, clients := newAuthority(t, "front"), newAuthority(t, "clients")
	url, _, asked := judged(t, serving.Authentication{
		ClientCAFile: file(t, clients.pem),
		RequestHeader: serving.RequestHeader{
			CAFile: file(t, front.pem), AllowedNames: []string{"aggregator"}, UsernameHeaders: []string{"X-Remote-User"},
			UIDHeaders: []string{"X-Remote-Uid"}, GroupHeaders: []string{"X-Remote-Group"}, ExtraHeaderPrefixes: []string{"X-Remote-Extra-"},
		},
	})
	headers := map[string]string{"X-Remote-User": "jane", "X-Remote-Uid": "7", "X-Remote-Group": "monitoring", "X-Remote-Extra-Why%2fnot": "b"}
	aggregator, thief := pkix.Name{CommonName: "aggregator"}, pkix.Name{CommonName: "thief"}
	for _, test := range []struct {
		name    string
		cert    *tls.Certificate
		headers map[string]string
		code    int
	}{
		{"the proxy for somebody", front.sign(t, aggregator, nil), headers, http.StatusOK},
		{"the proxy for nobody", front.sign(t, aggregator, nil), nil, http.StatusUnauthorized},
		{"a proxy of another name", front.sign(t, thief, nil), headers, http.StatusUnauthorized},
		{"a client with headers", clients.sign(t, aggregator, nil), headers, http.StatusForbidden},
		{"headers alone", nil, headers, http.StatusUnauthorized},
	} {
		if code, text := (caller{test.cert, test.headers}).get(t, url); code != test.code {
			t.Errorf("%s: %d %.200s, want %d", test.name, code, text, test.code)
		}
	}
	who := <-asked
	if who.User != "jane" || who.UID != "7" || fmt.Sprint(who.Groups) != "[monitoring system:authenticated]" || fmt.Sprint(who.Extra) != "map[why/not:[b]]" {
		t.Errorf("asked of %+v", who)
	}
}

// trusted is what API servers publish.
func trusted(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"}, Data: data}
}

func TestWhatAPIServersPublishIsBelievedAndItsChangesAreNoticed(t *testing.T) {
	first, second, front := newAuthority(t, "first"), newAuthority(t, "second"), newAuthority(t, "front")
	url, maps, _ := judged(t, serving.Authentication{Lookup: serving.NeedLookup}, trusted(map[string]string{
		"client-ca-file": first.pem, "requestheader-client-ca-file": front.pem, "requestheader-allowed-names": `["aggregator"]`,
		"requestheader-username-headers": `["X-Remote-User"]`, "requestheader-group-headers": `["X-Remote-Group"]`,
	}))
	old, young := caller{cert: first.sign(t, watcher, nil)}, caller{cert: second.sign(t, watcher, nil)}
	proxy := caller{front.sign(t, pkix.Name{CommonName: "aggregator"}, nil), map[string]string{"X-Remote-User": "jane", "X-Remote-Group": "monitoring"}}
	for name, c := range map[string]caller{"a client": old, "a proxy": proxy} {
		waitFor(t, name+" to be believed", func() bool { code, _ := c.get(t, url); return code == http.StatusOK })
	}
	if code, _ := young.get(t, url); code != http.StatusUnauthorized {
		t.Errorf("of an authority that is not published: %d", code)
	}
	admin, err := client.New(&rest.Config{Host: "http://in-memory", Transport: maps})
	if err != nil {
		t.Fatal(err)
	}
	change, err := client.MergePatch(map[string]any{"data": map[string]string{"client-ca-file": second.pem}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.For[*corev1.ConfigMap](admin).Patch(t.Context(), object.KeyOf(trusted(nil)), change); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the change to be noticed", func() bool { code, _ := young.get(t, url); return code == http.StatusOK })
	if code, _ := old.get(t, url); code != http.StatusUnauthorized {
		t.Errorf("of an authority that is no longer published: %d", code)
	}
}

func TestWithoutWhatMustBePublishedAManagerEndsAndSaysWhatIsMissing(t *testing.T) {
	for lookup, fatal := range map[serving.Lookup]bool{serving.NeedLookup: true, serving.TryLookup: false} {
		j := &judge{Server: fakeapi.New(podsResource, configMaps)}
		l := listen(t)
		m := broken(t, &rest.Config{Host: "http://in-memory", Transport: j}, manager.Serve(l, serving.Options{Authentication: serving.Authentication{Lookup: lookup}}))
		if fatal {
			if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "configmap kube-system/extension-apiserver-authentication") {
				t.Errorf("Run = %v", err)
			}
			continue
		}
		run(t, m)
		base := "https://" + l.Addr().String()
		waitFor(t, "the manager to be ready", func() bool { code, _ := ask(t, base+"/readyz", ""); return code == http.StatusOK })
		if code, text := (caller{cert: newAuthority(t, "any").sign(t, watcher, nil)}).get(t, base+"/metrics"); code != http.StatusUnauthorized || !strings.Contains(text, "no certificate authority is known") {
			t.Errorf("%d %s", code, text)
		}
	}
}

func TestAnAuthorityThatCannotBeReadAtFirstIsRefused(t *testing.T) {
	for text, want := range map[string]string{"": "is empty", "no certificate": "reading certificates of authorities"} {
		l := listen(t)
		_, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Log(slog.New(slog.DiscardHandler)),
			manager.Serve(l, serving.Options{Authentication: serving.Authentication{ClientCAFile: file(t, text)}}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
