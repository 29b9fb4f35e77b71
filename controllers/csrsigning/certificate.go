// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrsigning

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// serialBits is the size of serial numbers: enough that none is drawn twice, and within
// the 20 octets that RFC 5280 allows.
const serialBits = 128

// sign returns the requested certificate in PEM.
func (a Authority) sign(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage, lasts time.Duration, now time.Time) ([]byte, error) {
	from, to, err := validity(now, lasts, a.certificate.NotAfter)
	if err != nil {
		return nil, err
	}
	keyUsage, extended, err := usagesOf(usages)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	// What is not named here, the request's extensions above all, is not signed.
	certificate := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               r.Subject,
		DNSNames:              r.DNSNames,
		IPAddresses:           r.IPAddresses,
		EmailAddresses:        r.EmailAddresses,
		URIs:                  r.URIs,
		NotBefore:             from,
		NotAfter:              to,
		KeyUsage:              keyUsage,
		ExtKeyUsage:           extended,
		BasicConstraintsValid: true, // and no authority
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, a.certificate, r.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

var keyUsages = map[certificatesv1.KeyUsage]x509.KeyUsage{
	certificatesv1.UsageSigning:           x509.KeyUsageDigitalSignature,
	certificatesv1.UsageDigitalSignature:  x509.KeyUsageDigitalSignature,
	certificatesv1.UsageContentCommitment: x509.KeyUsageContentCommitment,
	certificatesv1.UsageKeyEncipherment:   x509.KeyUsageKeyEncipherment,
	certificatesv1.UsageKeyAgreement:      x509.KeyUsageKeyAgreement,
	certificatesv1.UsageDataEncipherment:  x509.KeyUsageDataEncipherment,
	certificatesv1.UsageCertSign:          x509.KeyUsageCertSign,
	certificatesv1.UsageCRLSign:           x509.KeyUsageCRLSign,
	certificatesv1.UsageEncipherOnly:      x509.KeyUsageEncipherOnly,
	certificatesv1.UsageDecipherOnly:      x509.KeyUsageDecipherOnly,
}

var extendedUsages = map[certificatesv1.KeyUsage]x509.ExtKeyUsage{
	certificatesv1.UsageAny:             x509.ExtKeyUsageAny,
	certificatesv1.UsageServerAuth:      x509.ExtKeyUsageServerAuth,
	certificatesv1.UsageClientAuth:      x509.ExtKeyUsageClientAuth,
	certificatesv1.UsageCodeSigning:     x509.ExtKeyUsageCodeSigning,
	certificatesv1.UsageEmailProtection: x509.ExtKeyUsageEmailProtection,
	certificatesv1.UsageSMIME:           x509.ExtKeyUsageEmailProtection,
	certificatesv1.UsageIPsecEndSystem:  x509.ExtKeyUsageIPSECEndSystem,
	certificatesv1.UsageIPsecTunnel:     x509.ExtKeyUsageIPSECTunnel,
	certificatesv1.UsageIPsecUser:       x509.ExtKeyUsageIPSECUser,
	certificatesv1.UsageTimestamping:    x509.ExtKeyUsageTimeStamping,
	certificatesv1.UsageOCSPSigning:     x509.ExtKeyUsageOCSPSigning,
	certificatesv1.UsageMicrosoftSGC:    x509.ExtKeyUsageMicrosoftServerGatedCrypto,
	certificatesv1.UsageNetscapeSGC:     x509.ExtKeyUsageNetscapeServerGatedCrypto,
}

// usagesOf translates the usages of the API into those of a certificate.
func usagesOf(usages []certificatesv1.KeyUsage) (x509.KeyUsage, []x509.ExtKeyUsage, error) {
	var all x509.KeyUsage
	var extended []x509.ExtKeyUsage
	for _, usage := range usages {
		if bit, ok := keyUsages[usage]; ok {
			all |= bit
		} else if id, ok := extendedUsages[usage]; ok {
			extended = append(extended, id)
		} else {
			return 0, nil, fmt.Errorf("unknown usage %q", usage)
		}
	}
	slices.Sort(extended)
	return all, slices.Compact(extended), nil
}
