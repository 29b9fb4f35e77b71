// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/ecdsa"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/setpoint-io/setpoint/internal/ownfile"
)

// FuzzMarker opens a data directory whose marker holds any bytes: it is accepted as one of this
// version or the one before, or refused with an error of one line that a terminal can show.
func FuzzMarker(f *testing.F) {
	f.Add([]byte(`{"format":1,"kubernetes":"1.36","etcd":"3.6"}`))
	f.Add([]byte(`{"format":1,"kubernetes":"\u001b[2J","etcd":"3.6\n"}`))
	f.Add([]byte(`{"format":"1"}`))
	f.Add([]byte("{\x1b]0;title\a"))
	f.Add([]byte(nil))
	dir := f.TempDir()
	own, err := ownfile.OpenDir(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = own.Close() })
	d := &dataDir{path: dir, dir: own}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, markerFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		rewrite, err := d.needsMarker()
		if err == nil {
			m, err := parseMarker(data)
			if err != nil || !m.upgradesTo(currentMarker()) || rewrite != (m != currentMarker()) {
				t.Errorf("the marker %q was accepted, to be rewritten: %t", data, rewrite)
			}
			return
		}
		wantPrintable(t, err)
	})
}

func wantPrintable(t *testing.T, err error) {
	t.Helper()
	if i := strings.IndexFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("the error holds what a terminal would act on, at byte %d: %q", i, err)
	}
}

// FuzzAuthority reads any bytes as the certificate and key of an authority: what is accepted
// can sign, and is a certificate authority.
func FuzzAuthority(f *testing.F) {
	dir := f.TempDir()
	own, err := ownfile.OpenDir(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = own.Close() })
	p, err := openPKI(own, nil, time.Now)
	if err != nil {
		f.Fatal(err)
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	f.Add(read("ca.crt"), read("ca.key"))
	f.Add(read("apiserver.crt"), read("apiserver.key"))
	f.Add(read("ca.crt"), read("sa.key"))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n\n-----END CERTIFICATE-----\n"), []byte(nil))
	f.Fuzz(func(t *testing.T, cert, key []byte) {
		for name, data := range map[string][]byte{"fuzz.crt": cert, "fuzz.key": key} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		a, err := p.openAuthority("fuzz", "unused")
		if err != nil {
			wantPrintable(t, err)
			return
		}
		if !a.cert.IsCA {
			t.Error("a certificate was accepted that is no authority's")
		}
		if _, err := p.issue(a, clientTemplate("somebody")); err != nil {
			t.Errorf("an authority was accepted that cannot sign: %v", err)
		}
		if _, ok := a.key.(*ecdsa.PrivateKey); !ok && a.key == nil {
			t.Error("an authority has no key")
		}
	})
}

// FuzzLockText reads any bytes as the process id in a lock file: it names a process or says
// that it does not know.
func FuzzLockText(f *testing.F) {
	f.Add([]byte("123\n"))
	f.Add([]byte("1; rm -rf ~"))
	f.Add([]byte("\x1b[2J"))
	f.Add([]byte("0"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := readPID(strings.NewReader(string(text)))
		if got != "(unknown)" && strings.Trim(got, "0123456789") != "" {
			t.Errorf("%q is read as process %q", text, got)
		}
	})
}

func TestAnAuthorityThatIsNoneIsRefused(t *testing.T) {
	dir := t.TempDir()
	p, err := openPKI(ownDir(t, dir), nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"apiserver.crt": "ca.crt", "apiserver.key": "ca.key"} {
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = p.openAuthority("ca", "unused")
	if err == nil || !strings.Contains(err.Error(), "not a certificate authority") {
		t.Errorf("a server's certificate was taken for an authority: %v", err)
	}
}

func TestAForeignKubeconfigIsNotQuoted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	put(t, file, "apiVersion: v1\nkind: Config\nusers: hunter2-is-my-password\n")
	err := removeKubeconfig(file)
	if !errors.Is(err, ErrForeignKubeconfig) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v", err)
	}
}
