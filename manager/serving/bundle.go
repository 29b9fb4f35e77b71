// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"k8s.io/client-go/util/cert"
)

// bundle has the certificates of authorities, from a text that may change. It is safe for
// concurrent use.
type bundle struct {
	read func() ([]byte, error) // returns the text as it is now; an empty one keeps the text before
	log  *slog.Logger

	mu   sync.Mutex
	text []byte         // that pool is made of
	pool *x509.CertPool // nil: there has not been a certificate yet
	said string         // the error that was logged last
}

// fileBundle returns the bundle of a file, which must be valid when the process starts.
func fileBundle(path string, log *slog.Logger) (*bundle, error) {
	b := &bundle{log: log, read: func() ([]byte, error) {
		text, err := os.ReadFile(path)
		if err == nil && len(text) == 0 {
			err = fmt.Errorf("%s is empty", path)
		}
		return text, err
	}}
	return b, b.refresh()
}

// roots returns the authorities that count now, nil if there are none.
func (b *bundle) roots() *x509.CertPool {
	b.mu.Lock()
	defer b.mu.Unlock()
	said := ""
	if err := b.refresh(); err != nil {
		said = err.Error()
	}
	if said != "" && said != b.said {
		b.log.Warn("certificate authorities cannot be read; those of before are believed", "error", said)
	}
	b.said = said
	return b.pool
}

// refresh reads the text, and makes a pool if the text has changed.
func (b *bundle) refresh() error {
	text, err := b.read()
	if err != nil || len(text) == 0 || bytes.Equal(text, b.text) {
		return err
	}
	authorities, err := cert.ParseCertsPEM(text)
	if err != nil {
		return fmt.Errorf("reading certificates of authorities: %w", err)
	}
	b.text, b.pool = text, x509.NewCertPool()
	for _, c := range authorities {
		b.pool.AddCert(c)
	}
	return nil
}
