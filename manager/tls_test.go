// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
)

// served runs a manager that serves, and returns its address and how often its API server
// was asked about somebody.
func served(t *testing.T, how serving.Options) (address string, reviews func() int) {
	t.Helper()
	judge := &reviewer{next: somePods(t)}
	server := http.Server{Handler: judge, ReadHeaderTimeout: deadline}
	api := listen(t)
	go func() { _ = server.Serve(api) }()
	t.Cleanup(func() { _ = server.Close() })
	l := listen(t)
	run(t, broken(t, &rest.Config{Host: "http://" + api.Addr().String()}, manager.Serve(l, how)))
	address = l.Addr().String()
	waitFor(t, "the manager to serve", func() bool { code, _ := ask(t, "https://"+address+"/livez", ""); return code != 0 })
	return address, func() int {
		judge.mu.Lock()
		defer judge.mu.Unlock()
		return judge.reviews
	}
}

func TestAnswersCountForAsLongAsTheyAreToBeRemembered(t *testing.T) {
	const long = 24 * time.Hour
	for _, test := range []struct {
		name   string
		how    serving.Remember
		token  string
		asked  int // for the first of five questions, with those of the token
		always int // for each of the others
	}{
		{"all", serving.Remember{Tokens: long, Allowed: long, Denied: long}, "token-of-prometheus", 2, 0},
		{"nothing", serving.Remember{Tokens: -1, Allowed: -1, Denied: -1}, "token-of-prometheus", 2, 2},
		{"tokens alone", serving.Remember{Tokens: long, Allowed: -1, Denied: long}, "token-of-prometheus", 2, 2},
		{"rights alone", serving.Remember{Tokens: -1, Allowed: long, Denied: -1}, "token-of-prometheus", 2, 2},
		{"what is not allowed", serving.Remember{Tokens: long, Allowed: -1, Denied: long}, "token-of-somebody", 2, 0},
		{"what is not allowed, not at all", serving.Remember{Tokens: long, Allowed: long, Denied: -1}, "token-of-somebody", 2, 2},
		{"who is nobody", serving.Remember{Tokens: long}, "forged", 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			address, reviews := served(t, serving.Options{Authentication: serving.Authentication{Remember: test.how}})
			before := reviews()
			for range 5 {
				ask(t, "https://"+address+"/metrics", test.token)
			}
			if got, want := reviews()-before, test.asked+4*test.always; got != want {
				t.Errorf("the API server was asked %d times, want %d", got, want)
			}
		})
	}
}

func TestOpenPathsAreForEverybodyAndNothingElseIs(t *testing.T) {
	address, _ := served(t, serving.Options{OpenPaths: []string{"/metrics", "/debug/*"}})
	for path, code := range map[string]int{
		"/metrics": http.StatusOK, "/debug/controllers": http.StatusOK, "/healthz": http.StatusUnauthorized, "/readyz/ping": http.StatusUnauthorized,
	} {
		if got, text := ask(t, "https://"+address+path, ""); got != code {
			t.Errorf("%s: %d %.100s, want %d", path, got, text, code)
		}
	}
	address, _ = served(t, serving.Options{OpenPaths: []string{}})
	if code, _ := ask(t, "https://"+address+"/livez", ""); code != http.StatusUnauthorized {
		t.Errorf("/livez without open paths: %d", code)
	}
	for _, wrong := range []string{"", "/a*b"} {
		_, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Serve(listen(t), serving.Options{OpenPaths: []string{wrong}}))
		if err == nil || !strings.Contains(err.Error(), "open path") {
			t.Errorf("the path %q: %v", wrong, err)
		}
	}
}

// dial connects and returns the state of the connection.
func dial(t *testing.T, address string, config *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	config.InsecureSkipVerify = true
	dialer := tls.Dialer{Config: config}
	c, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer c.Close()
	return c.(*tls.Conn).ConnectionState(), nil
}

//nolint:gosec // clients of old versions are what the server is to refuse
func TestConnectionsAreEncryptedAsAsked(t *testing.T) {
	const suite = tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
	both := []string{"h2", "http/1.1"}
	for _, test := range []struct {
		name     string
		how      serving.TLS
		client   *tls.Config
		protocol string // "" is refused
	}{
		{"by default with HTTP/2", serving.TLS{}, &tls.Config{NextProtos: both}, "h2"},
		{"by default no TLS 1.1", serving.TLS{}, &tls.Config{NextProtos: both, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, ""},
		{"without HTTP/2", serving.TLS{NoHTTP2: true}, &tls.Config{NextProtos: both}, "http/1.1"},
		{"a newer version", serving.TLS{MinVersion: tls.VersionTLS13}, &tls.Config{NextProtos: both, MaxVersion: tls.VersionTLS12}, ""},
		{"an older version", serving.TLS{MinVersion: tls.VersionTLS10, NoHTTP2: true}, &tls.Config{NextProtos: both, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}, "http/1.1"},
		{"a suite that HTTP/2 does not take", serving.TLS{CipherSuites: []uint16{suite}}, &tls.Config{NextProtos: both, MaxVersion: tls.VersionTLS12}, "http/1.1"},
		{"another suite", serving.TLS{CipherSuites: []uint16{suite}}, &tls.Config{
			NextProtos: both, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		}, ""},
		{"another curve", serving.TLS{Curves: []tls.CurveID{tls.CurveP384}}, &tls.Config{NextProtos: both, CurvePreferences: []tls.CurveID{tls.X25519}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			address, _ := served(t, serving.Options{TLS: test.how})
			state, err := dial(t, address, test.client.Clone())
			if got := state.NegotiatedProtocol; got != test.protocol || (err == nil) != (test.protocol != "") {
				t.Errorf("it speaks %q, %v; want %q", got, err, test.protocol)
			}
		})
	}
}

// hostPair writes a certificate for a host and its key, and returns the files.
func hostPair(t *testing.T, host string) (cert, key string) {
	t.Helper()
	c := newAuthority(t, "authority").sign(t, pkix.Name{CommonName: host}, func(c *x509.Certificate) {
		c.DNSNames, c.ExtKeyUsage = []string{host}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
	raw, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "crt"), filepath.Join(dir, "key")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestAClientThatNamesAHostGetsItsCertificate(t *testing.T) {
	usualCert, usualKey := hostPair(t, "usual.example.com")
	ownCert, ownKey := hostPair(t, "own.example.com")
	namedCert, namedKey := hostPair(t, "other.example.com")
	address, _ := served(t, serving.Options{CertFile: usualCert, KeyFile: usualKey, TLS: serving.TLS{Names: []serving.NamedCertificate{
		{CertFile: ownCert, KeyFile: ownKey}, {CertFile: namedCert, KeyFile: namedKey, Names: []string{"*.shop.example.com"}},
	}}})
	for host, want := range map[string]string{
		"": "usual.example.com", "x.example.com": "usual.example.com", "own.example.com": "own.example.com",
		"a.shop.example.com": "other.example.com", "other.example.com": "usual.example.com",
	} {
		state, err := dial(t, address, &tls.Config{ServerName: host})
		if err != nil {
			t.Fatal(err)
		}
		if got := state.PeerCertificates[0].Subject.CommonName; got != want {
			t.Errorf("%q gets the certificate of %s, want %s", host, got, want)
		}
	}
}

func TestTheCertificateThatIsMadeIsKeptInItsFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	var serials []string
	for range 2 {
		address, _ := served(t, serving.Options{CertDir: dir})
		state, err := dial(t, address, &tls.Config{})
		if err != nil {
			t.Fatal(err)
		}
		serials = append(serials, state.PeerCertificates[0].SerialNumber.String())
	}
	if serials[0] != serials[1] {
		t.Errorf("two certificates, %q", serials)
	}
	if info, err := os.Stat(filepath.Join(dir, "kube-controller-manager.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info, err)
	}
	if err := os.Remove(filepath.Join(dir, "kube-controller-manager.key")); err != nil {
		t.Fatal(err)
	}
	_, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Serve(listen(t), serving.Options{CertDir: dir}))
	if err == nil || !strings.Contains(err.Error(), "without its key") {
		t.Errorf("a certificate without key: %v", err)
	}
}
