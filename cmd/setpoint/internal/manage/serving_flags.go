// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/internal/nearest"
	"github.com/setpoint-io/setpoint/manager/serving"
)

// servingFlags are how the process serves with TLS. Names, meanings and defaults are those of
// kube-controller-manager. They are read only where it serves, as there.
// Source: k8s.io/apiserver/pkg/server/options, serving.go.
type servingFlags struct {
	certDir, minVersion string
	suites              []string
	curves              []int32
	named               namedCertificates
	noHTTP2             bool
	maxStreams          int
	sharing             cli.Sharing
}

func (s *servingFlags) flags(flags *pflag.FlagSet) {
	flags.StringVar(&s.certDir, "cert-dir", "", "`folder` in which the certificate is kept that is made, as kube-controller-manager.crt and .key; not used with --tls-cert-file")
	flags.StringVar(&s.minVersion, "tls-min-version", "", "oldest `version` of TLS that is accepted: "+strings.Join(slices.Sorted(maps.Keys(tlsVersions())), ", "))
	flags.StringSliceVar(&s.suites, "tls-cipher-suites", nil, "`suites` that clients may choose from, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 (default: Go's)")
	flags.Int32SliceVar(&s.curves, "tls-curve-preferences", nil, "`numbers` of the key exchanges that clients may choose from, as in crypto/tls (default: Go's)")
	flags.Var(&s.named, "tls-sni-cert-key", "`files` of a certificate and its key, with a comma between them, for clients that name one of its hosts, or one of those after a colon; more than once for several")
	flags.BoolVar(&s.noHTTP2, "disable-http2-serving", false, "serve HTTP/1.1 alone")
	flags.IntVar(&s.maxStreams, "http2-max-streams-per-connection", 0, "how many requests a client may have under way on one connection; 0 is Go's choice")
	flags.BoolVar(&s.sharing.Port, "permit-port-sharing", false, "let others listen on the same address and port (SO_REUSEPORT)")
	flags.BoolVar(&s.sharing.Address, "permit-address-sharing", false, "let others listen on the same port of other addresses (SO_REUSEADDR)")
}

// into has the flags count, where the process serves.
func (s *servingFlags) into(answer *cli.Answering) error {
	if !answer.Serves() {
		return nil
	}
	how := serving.TLS{NoHTTP2: s.noHTTP2, MaxStreams: s.maxStreams, Names: s.named.all}
	if s.minVersion != "" {
		known := tlsVersions()
		if how.MinVersion = known[s.minVersion]; how.MinVersion == 0 {
			return fmt.Errorf("--tls-min-version=%s: want one of %s", s.minVersion, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	known := cipherSuites()
	for _, name := range s.suites {
		number, ok := known[name]
		if !ok {
			return fmt.Errorf("--tls-cipher-suites: there is no suite %q%s", name, nearest.Question("%s", name, slices.Sorted(maps.Keys(known))))
		}
		how.CipherSuites = append(how.CipherSuites, number)
	}
	for _, n := range s.curves {
		if n < 1 || n > 65535 {
			return fmt.Errorf("--tls-curve-preferences=%d: want numbers of crypto/tls, such as 29 for X25519", n)
		}
		how.Curves = append(how.Curves, tls.CurveID(n))
	}
	answer.Encrypt(how, s.certDir)
	answer.Share(s.sharing)
	return nil
}

// tlsVersions are those of TLS, as Kubernetes calls them.
// Source: k8s.io/component-base/cli/flag, ciphersuites_flag.go.
func tlsVersions() map[string]uint16 {
	return map[string]uint16{"VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11, "VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13}
}

// cipherSuites are those that Go has, secure or not. Two have a second name.
// Source: k8s.io/component-base/cli/flag, ciphersuites_flag.go.
func cipherSuites() map[string]uint16 {
	all := map[string]uint16{
		"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	}
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		all[suite.Name] = suite.ID
	}
	return all
}

// namedCertificates are pairs of files, "cert,key" or "cert,key:name,name".
type namedCertificates struct{ all []serving.NamedCertificate }

// String implements pflag.Value.
func (n *namedCertificates) String() string {
	var texts []string
	for _, c := range n.all {
		text := c.CertFile + "," + c.KeyFile
		if len(c.Names) > 0 {
			text += ":" + strings.Join(c.Names, ",")
		}
		texts = append(texts, text)
	}
	return "[" + strings.Join(texts, ";") + "]"
}

// Type implements pflag.Value.
func (n *namedCertificates) Type() string { return "namedCertKey" }

// ExplainsItself says that its errors do.
func (n *namedCertificates) ExplainsItself() {}

// Set implements pflag.Value. Each adds one.
func (n *namedCertificates) Set(text string) error {
	files, names, _ := strings.Cut(text, ":")
	cert, key, two := strings.Cut(files, ",")
	cert, key = strings.TrimSpace(cert), strings.TrimSpace(key)
	if !two || cert == "" || key == "" || strings.Contains(key, ",") {
		return errors.New("want the files of a certificate and of its key, such as a.crt,a.key or a.crt,a.key:a.example.com")
	}
	c := serving.NamedCertificate{CertFile: cert, KeyFile: key}
	for name := range strings.SplitSeq(names, ",") {
		if name = strings.TrimSpace(name); name != "" {
			c.Names = append(c.Names, name)
		}
	}
	n.all = append(n.all, c)
	return nil
}
