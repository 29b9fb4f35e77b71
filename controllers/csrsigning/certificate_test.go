// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrsigning

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/internal/certrequest"
	"github.com/setpoint-io/setpoint/internal/certrequesttest"
)

// now is when the certificates of these tests are signed.
var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func TestACertificateLastsAsLongAsAskedForWithinBounds(t *testing.T) {
	for name, c := range map[string]struct {
		seconds *int32
		longest time.Duration
		want    time.Duration
	}{
		"no wish":                     {nil, time.Hour, time.Hour},
		"less than the longest":       {new(int32(1800)), time.Hour, 30 * time.Minute},
		"more than the longest":       {new(int32(7200)), time.Hour, time.Hour},
		"less than the shortest":      {new(int32(1)), time.Hour, ShortestLifetime},
		"nothing":                     {new(int32(0)), time.Hour, ShortestLifetime},
		"the longest is shorter":      {new(int32(60)), time.Minute, time.Minute},
		"the largest that can be":     {new(int32(1<<31 - 1)), LongestLifetime, LongestLifetime},
		"no wish, less than shortest": {nil, time.Minute, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lifetime(c.seconds, c.longest); got != c.want {
				t.Errorf("it lasts %s, want %s", got, c.want)
			}
		})
	}
}

func TestACertificateBeginsFiveMinutesAgoAndEndsWithItsAuthorityAtTheLatest(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, c := range map[string]struct {
		lasts, authority time.Duration // the authority from now on
		wantEnd          time.Duration // from now on
	}{
		"a short one is not cut by the backdate": {time.Hour, year, time.Hour},
		"just below eight hours":                 {8*time.Hour - time.Second, year, 8*time.Hour - time.Second},
		"from eight hours on it is":              {8 * time.Hour, year, 8*time.Hour - Backdate},
		"a year":                                 {year, 2 * year, year - Backdate},
		"longer than the authority":              {year, 24 * time.Hour, 24 * time.Hour},
		"an authority in its last second":        {time.Hour, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			from, to, err := validity(now, c.lasts, now.Add(c.authority))
			if err != nil || !from.Equal(now.Add(-5*time.Minute)) || !to.Equal(now.Add(c.wantEnd)) {
				t.Errorf("valid from %s to %s (%v), want from %s to %s", from, to, err, now.Add(-5*time.Minute), now.Add(c.wantEnd))
			}
		})
	}
	for _, ended := range []time.Duration{0, -time.Second, -year} {
		if _, _, err := validity(now, time.Hour, now.Add(ended)); err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("an authority that ended %s ago signs: %v", -ended, err)
		}
	}
}

func TestNoCertificateOutlivesItsAuthorityOrTheLongestLifetime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		longest := time.Duration(rapid.Int64Range(1, int64(LongestLifetime)).Draw(t, "longest"))
		var seconds *int32
		if rapid.Bool().Draw(t, "wish") {
			seconds = new(rapid.Int32().Draw(t, "seconds"))
		}
		ends := now.Add(time.Duration(rapid.Int64Range(1, int64(2*LongestLifetime)).Draw(t, "authority")))
		from, to, err := validity(now, lifetime(seconds, longest), ends)
		if err != nil || !from.Before(to) || to.After(ends) || to.Sub(now) > longest {
			t.Fatalf("valid from %s to %s (%v), longest %s, authority until %s", from, to, err, longest, ends)
		}
	})
}

// sign has an authority that lasts two years sign a request for a year.
func sign(t *testing.T, r x509.CertificateRequest, usages ...certificatesv1.KeyUsage) *x509.Certificate {
	t.Helper()
	p := newPair(t, ellipticKey(t), now.Add(2*LongestLifetime), nil)
	a, err := ParseAuthority(p.certificate, p.key)
	if err != nil {
		t.Fatal(err)
	}
	request, key := certrequesttest.Encode(t, r)
	parsed, err := certrequest.Parse(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := a.sign(parsed, usages, LongestLifetime, now)
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" || len(rest) > 0 {
		t.Fatalf("it is no certificate in PEM: %s", text)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := certificate.CheckSignatureFrom(a.certificate); err != nil {
		t.Error(err)
	}
	if !certificate.PublicKey.(interface{ Equal(crypto.PublicKey) bool }).Equal(key.Public()) {
		t.Error("the public key is not the request's")
	}
	return certificate
}

func TestACertificateNamesWhatWasAskedForAndIsNeverAnAuthority(t *testing.T) {
	constraints, err := asn1.Marshal(struct {
		IsCA bool
	}{true})
	if err != nil {
		t.Fatal(err)
	}
	r := certrequesttest.User("jane", "team-a", "team-b")
	r.DNSNames, r.IPAddresses = []string{"web.example"}, []net.IP{net.IPv4(10, 0, 0, 1).To4()}
	r.EmailAddresses, r.URIs = []string{"jane@example"}, []*url.URL{{Scheme: "spiffe", Host: "jane"}}
	r.ExtraExtensions = []pkix.Extension{
		{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: constraints}, // basic constraints: an authority
		{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Value: []byte{5, 0}},
	}
	c := sign(t, r, certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature)
	if c.Subject.CommonName != "jane" || !slices.Equal(c.Subject.Organization, []string{"team-a", "team-b"}) {
		t.Errorf("it names %s", c.Subject)
	}
	if !slices.Equal(c.DNSNames, r.DNSNames) || len(c.IPAddresses) != 1 || !c.IPAddresses[0].Equal(r.IPAddresses[0]) ||
		!slices.Equal(c.EmailAddresses, r.EmailAddresses) || len(c.URIs) != 1 || c.URIs[0].String() != "spiffe://jane" {
		t.Errorf("its alternative names are %v %v %v %v", c.DNSNames, c.IPAddresses, c.EmailAddresses, c.URIs)
	}
	if c.IsCA || !c.BasicConstraintsValid {
		t.Error("it is an authority")
	}
	for _, extension := range c.Extensions {
		if extension.Id.Equal(asn1.ObjectIdentifier{1, 2, 3, 4}) {
			t.Error("an extension of the request was signed")
		}
	}
	if !c.NotBefore.Equal(now.Add(-Backdate)) || !c.NotAfter.Equal(now.Add(LongestLifetime-Backdate)) {
		t.Errorf("it is valid from %s to %s", c.NotBefore, c.NotAfter)
	}
	if other := sign(t, r, certificatesv1.UsageClientAuth); other.SerialNumber.Cmp(c.SerialNumber) == 0 {
		t.Error("two certificates have one serial number")
	}
}

func TestTheUsagesAreThoseOfTheSpec(t *testing.T) {
	c := sign(t, certrequesttest.User("jane"),
		certificatesv1.UsageSigning, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment,
		certificatesv1.UsageServerAuth, certificatesv1.UsageSMIME, certificatesv1.UsageEmailProtection, certificatesv1.UsageClientAuth)
	if c.KeyUsage != x509.KeyUsageDigitalSignature|x509.KeyUsageKeyEncipherment {
		t.Errorf("the key usage is %b", c.KeyUsage)
	}
	if want := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageEmailProtection}; !slices.Equal(c.ExtKeyUsage, want) {
		t.Errorf("the extended key usages are %v, want %v", c.ExtKeyUsage, want)
	}
	if _, _, err := usagesOf([]certificatesv1.KeyUsage{"world domination"}); err == nil {
		t.Error("an unknown usage is known")
	}
}

func TestEachSignerSignsWhatItIsForAndSaysOfTheRestWhatIsWrong(t *testing.T) {
	const (
		sign, client, server = certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth
		user                 = certificatesv1.KubeAPIServerClientSignerName
		kubelet              = certificatesv1.KubeAPIServerClientKubeletSignerName
		serving              = certificatesv1.KubeletServingSignerName
		legacy               = certificatesv1beta1.LegacyUnknownSignerName
	)
	node := certrequesttest.Node("a")
	named := node
	named.DNSNames = []string{"a"}
	jane := certrequesttest.User("jane")
	for _, c := range []struct {
		signer  string
		request x509.CertificateRequest
		usages  []certificatesv1.KeyUsage
		want    string
	}{
		{user, jane, []certificatesv1.KeyUsage{client}, ""},
		{user, jane, []certificatesv1.KeyUsage{client, sign, certificatesv1.UsageKeyEncipherment}, ""},
		{user, jane, []certificatesv1.KeyUsage{client, server}, "invalid usage for client certificate: server auth"},
		{user, jane, []certificatesv1.KeyUsage{sign}, "missing required usage for client certificate: client auth"},
		{user, jane, nil, "missing required usage for client certificate: client auth"},
		{kubelet, node, []certificatesv1.KeyUsage{client, sign}, ""},
		{kubelet, jane, []certificatesv1.KeyUsage{client, sign}, "subject organization is not system:nodes"},
		{serving, named, []certificatesv1.KeyUsage{server, sign}, ""},
		{serving, node, []certificatesv1.KeyUsage{server, sign}, "DNS or IP subjectAltName is required"},
		{legacy, jane, []certificatesv1.KeyUsage{certificatesv1.UsageCodeSigning}, ""},
	} {
		err := checks[c.signer](&c.request, c.usages)
		if got := errorText(err); got != c.want {
			t.Errorf("%s says of %s with %v: %q, want %q", c.signer, c.request.Subject, c.usages, got, c.want)
		}
	}
	if len(Signers()) != len(checks) {
		t.Errorf("%d signers are listed, %d are known", len(Signers()), len(checks))
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
