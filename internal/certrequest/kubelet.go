// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package certrequest

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// Whom a kubelet's certificate names, which is what the Node authorizer goes by.
const (
	nodesGroup     = "system:nodes"
	nodeUserPrefix = "system:node:"
)

// What is wrong with a request. The words are those that upstream writes into the
// condition Failed, which people search for.
// Source: k8s.io/kubernetes/pkg/apis/certificates/helpers.go.
var (
	errOrganization = errors.New("subject organization is not system:nodes")
	errCommonName   = errors.New("subject common name does not begin with system:node:") //nolint:revive,staticcheck // upstream's words
	errNoName       = errors.New("DNS or IP subjectAltName is required")
	errDNS          = errors.New("DNS subjectAltNames are not allowed")
	errEmail        = errors.New("Email subjectAltNames are not allowed") //nolint:staticcheck // upstream's words
	errIP           = errors.New("IP subjectAltNames are not allowed")
	errURI          = errors.New("URI subjectAltNames are not allowed")
)

// CheckKubeletClient returns what keeps a request from being one by which a kubelet
// can authenticate to the API server, or nil.
func CheckKubeletClient(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	switch {
	case !slices.Equal(r.Subject.Organization, []string{nodesGroup}):
		return errOrganization
	case len(r.DNSNames) > 0:
		return errDNS
	case len(r.EmailAddresses) > 0:
		return errEmail
	case len(r.IPAddresses) > 0:
		return errIP
	case len(r.URIs) > 0:
		return errURI
	case !strings.HasPrefix(r.Subject.CommonName, nodeUserPrefix):
		return errCommonName
	}
	return checkUsages(usages, certificatesv1.UsageClientAuth)
}

// CheckKubeletServing returns what keeps a request from being one by which clients can
// know a kubelet, or nil.
func CheckKubeletServing(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	switch {
	case !slices.Equal(r.Subject.Organization, []string{nodesGroup}):
		return errOrganization
	case len(r.DNSNames) == 0 && len(r.IPAddresses) == 0:
		return errNoName
	case len(r.EmailAddresses) > 0:
		return errEmail
	case len(r.URIs) > 0:
		return errURI
	}
	if err := checkUsages(usages, certificatesv1.UsageServerAuth); err != nil {
		return err
	}
	if !strings.HasPrefix(r.Subject.CommonName, nodeUserPrefix) {
		return errCommonName
	}
	return nil
}

// checkUsages wants digital signature and one more, and lets key encipherment through,
// which only RSA has a use for.
func checkUsages(usages []certificatesv1.KeyUsage, auth certificatesv1.KeyUsage) error {
	needed := []certificatesv1.KeyUsage{auth, certificatesv1.UsageDigitalSignature}
	optional := certificatesv1.UsageKeyEncipherment
	given := slices.Compact(slices.Sorted(slices.Values(usages)))
	given = slices.DeleteFunc(given, func(u certificatesv1.KeyUsage) bool { return u == optional })
	slices.Sort(needed)
	if slices.Equal(given, needed) {
		return nil
	}
	all := append(needed, optional)
	slices.Sort(all)
	return fmt.Errorf("usages did not match %v", all)
}
