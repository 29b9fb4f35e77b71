// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
)

// Serving says how questions about the process are answered.
type Serving struct {
	// Plain is HTTP without TLS, open to every client that can reach it. Only listeners on a
	// loopback address may have it.
	Plain bool
	// CertFile and KeyFile are read anew, once a second at most, and so may be replaced.
	// Without them the manager makes a certificate, which lives as long as it does.
	CertFile, KeyFile string
	// CertDir is a folder in which the certificate is kept that the manager makes, in the files
	// kube-controller-manager.crt and kube-controller-manager.key.
	CertDir string
	// TLS says how connections are encrypted.
	TLS TLS
	// Profiling adds /debug/pprof/.
	Profiling bool
	// OpenPaths are what everybody may see, and nothing else; a star at the end stands for
	// any rest. nil is health alone, with all below it. It is not looked at where Plain is
	// set.
	OpenPaths []string
	// Authentication says by what those are known who ask, beside by tokens. It is not
	// looked at where Plain is set.
	Authentication Authentication
}

type serving struct {
	Serving
	listener net.Listener
	access   *access // nil if Plain
}

// Serve has the manager answer questions on a listener, from Run's begin to its end:
// /healthz, /livez and /readyz, with a path below them for each check, to everybody;
// /metrics, /debug/controllers and /debug/informers to users with the right. A client sends
// a bearer token, which the API server authenticates (TokenReview), or authenticates as
// [Authentication] says; the API server says whether the user may get that path
// (SubjectAccessReview). Its answers are remembered for ten seconds. Run closes the listener.
func Serve(l net.Listener, s Serving) Option {
	return func(m *Manager) { m.servings = append(m.servings, serving{Serving: s, listener: l}) }
}

// prepare holds that a serving makes sense, and finds out who decides about those who ask.
func (m *Manager) prepare(s *serving) error {
	if s.Plain {
		if tcp, ok := s.listener.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
			return errors.New("without TLS that is open to the network; use a loopback address such as 127.0.0.1")
		}
		return nil
	}
	if (s.CertFile == "") != (s.KeyFile == "") {
		return errors.New("a certificate and its key are needed, or none of them")
	}
	if err := checkOpen(s.OpenPaths); err != nil {
		return err
	}
	if err := s.inCertDir(); err != nil {
		return err
	}
	if s.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile); err != nil {
			return err
		}
	}
	var err error
	if s.access, err = m.newAccess(s.Authentication); err != nil {
		return err
	}
	_, err = s.tls() // so that what is wrong is said now
	return err
}

// What a client may take: time for a request, its body included, for an answer, and between
// two requests; bytes for the line of the request and its headers.
const (
	requestTime = 10 * time.Second
	answerTime  = 30 * time.Second
	idleTime    = 90 * time.Second
	headerMost  = 32 << 10
)

// serve begins to answer and returns what ends that, within a time.
func (m *Manager) serve() (end func(most time.Duration)) {
	var servers []*http.Server
	var tasks sync.WaitGroup
	for _, s := range m.servings {
		first := local
		health, guard := s.guards()
		var listener net.Listener = newBounded(s.listener)
		if !s.Plain {
			config, err := s.tls()
			if err != nil {
				m.log.Error("not serving", "address", listener.Addr().String(), "error", err)
				continue
			}
			first, listener = func(h http.Handler) http.Handler { return h }, tls.NewListener(listener, config)
		}
		server := &http.Server{
			Handler:     first(m.handler(s.Profiling, health, guard)),
			ReadTimeout: requestTime, WriteTimeout: answerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerMost,
			ErrorLog: slog.NewLogLogger(m.log.Handler(), slog.LevelDebug), // of bad handshakes and the like
		}
		s.TLS.streams(server)
		servers = append(servers, server)
		tasks.Go(func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				m.log.Error("no longer serving", "address", listener.Addr().String(), "error", err)
			}
		})
		m.log.Info("serving health and metrics", "address", listener.Addr().String(), "tls", !s.Plain)
	}
	return func(most time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), most)
		defer cancel()
		for _, server := range servers {
			if server.Shutdown(ctx) != nil {
				_ = server.Close() // a profile that is being taken, say
			}
		}
		tasks.Wait()
	}
}

func (s *serving) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if s.access.certificates.any() {
		config.ClientAuth = tls.RequestClientCert // whether it counts is seen to for each request
	}
	if s.CertFile != "" {
		config.GetCertificate = (&keyPair{cert: s.CertFile, key: s.KeyFile}).get
		return config, s.TLS.into(config)
	}
	c, err := selfMade(s.listener.Addr())
	if err != nil {
		return nil, fmt.Errorf("making a certificate: %w", err)
	}
	config.Certificates = []tls.Certificate{c}
	return config, s.TLS.into(config)
}

// keyPair is a certificate and its key in files. Strangers connect as often as they want;
// the files are read once a second at most. It is safe for concurrent use.
type keyPair struct {
	cert, key string

	mu   sync.Mutex
	at   time.Time
	pair *tls.Certificate
	err  error
}

func (k *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.at.IsZero() || time.Since(k.at) >= time.Second {
		pair, err := tls.LoadX509KeyPair(k.cert, k.key)
		k.pair, k.err, k.at = &pair, err, time.Now()
	}
	return k.pair, k.err
}

// selfMade makes a certificate that nobody has signed, for those who look at the
// connection's encryption alone, as kubelets do.
func selfMade(address net.Addr) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "setpoint-manager"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if tcp, ok := address.(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() {
		template.IPAddresses = append(template.IPAddresses, tcp.IP)
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, nil
}
