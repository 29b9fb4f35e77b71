// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package traces

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The variables.
// Source: OpenTelemetry specification, "Environment Variable Specification" and "OpenTelemetry Protocol Exporter".
const (
	sdkDisabled        = "OTEL_SDK_DISABLED"
	tracesExporter     = "OTEL_TRACES_EXPORTER"
	tracesSampler      = "OTEL_TRACES_SAMPLER"
	tracesSamplerArg   = "OTEL_TRACES_SAMPLER_ARG"
	serviceName        = "OTEL_SERVICE_NAME"
	resourceAttributes = "OTEL_RESOURCE_ATTRIBUTES"
	queueSize          = "OTEL_BSP_MAX_QUEUE_SIZE"
	batchSize          = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
	scheduleDelay      = "OTEL_BSP_SCHEDULE_DELAY"

	// This one is ours: the specification has none for it.
	traceAnnotations = "SETPOINT_TRACE_ANNOTATIONS"

	// Of these there are two each: for traces, and for all that OTLP exports.
	forAll    = "OTEL_EXPORTER_OTLP_"
	forTraces = "OTEL_EXPORTER_OTLP_TRACES_"
)

// defaultEndpoint is used if the exporter is named and its endpoint is not.
const defaultEndpoint = "http://localhost:4318"

// FromEnvironment returns the configuration that the standard OTEL_* variables name, or nil if they name no receiver or
// switch traces off. getenv is os.Getenv, or another function that returns "" for a variable that is not set. service is
// the name of the program, for which OTEL_SERVICE_NAME can set another one. Errors name the variable, and do not quote
// headers.
func FromEnvironment(getenv func(string) string, service string) (*Config, error) {
	e := environment{getenv: func(name string) string { return strings.TrimSpace(getenv(name)) }}
	endpoint := e.endpoint()
	if endpoint == "" || e.err != nil {
		return nil, e.err
	}
	c := &Config{
		Endpoint: endpoint, Headers: e.pairs(e.either("HEADERS")), Gzip: e.oneOf("COMPRESSION", "none", "gzip") == "gzip",
		Timeout: e.milliseconds(e.either("TIMEOUT")), TLS: e.tls(),
		Resource: e.pairs(resourceAttributes), Drop: e.drop(), Annotations: e.boolean(traceAnnotations),
		Queue: e.number(queueSize), Batch: e.number(batchSize), Delay: e.milliseconds(scheduleDelay),
	}
	e.oneOf("PROTOCOL", "http/protobuf")
	if name := e.getenv(serviceName); name != "" {
		c.Resource["service.name"] = name
	} else if c.Resource["service.name"] == "" {
		c.Resource["service.name"] = service
	}
	if e.err != nil {
		return nil, e.err
	}
	return c, nil
}

// environment reads variables. It keeps the first error.
type environment struct {
	getenv func(string) string
	err    error
}

func (e *environment) fail(variable, format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("%s: %w", variable, fmt.Errorf(format, args...))
	}
}

// either returns the name of the variable for traces if it is set, and of the one for everything otherwise.
func (e *environment) either(suffix string) string {
	if e.getenv(forTraces+suffix) != "" {
		return forTraces + suffix
	}
	return forAll + suffix
}

// endpoint returns the URL of the receiver, or "" if there is none.
func (e *environment) endpoint() string {
	if strings.EqualFold(e.getenv(sdkDisabled), "true") {
		return ""
	}
	exporter := e.getenv(tracesExporter)
	switch exporter {
	case "", "otlp":
	case "none":
		return ""
	default:
		e.fail(tracesExporter, "the exporter %q is not known; want otlp or none", exporter)
		return ""
	}
	if endpoint := e.getenv(forTraces + "ENDPOINT"); endpoint != "" {
		return endpoint // as it is
	}
	endpoint := e.getenv(forAll + "ENDPOINT")
	if endpoint == "" && exporter != "" {
		endpoint = defaultEndpoint
	}
	if endpoint == "" {
		return ""
	}
	at, err := url.Parse(endpoint)
	if err != nil { // its text has the URL, which may have a password
		e.fail(forAll+"ENDPOINT", "want a URL such as %s", defaultEndpoint)
		return ""
	}
	return at.JoinPath("v1/traces").String()
}

// oneOf returns the value of a variable that has to be one of some, of which the first is the default.
func (e *environment) oneOf(suffix string, values ...string) string {
	variable := e.either(suffix)
	value := e.getenv(variable)
	if value == "" {
		return values[0]
	}
	if !slices.Contains(values, value) {
		e.fail(variable, "%q is not supported; want %s", value, strings.Join(values, " or "))
	}
	return value
}

// pairs returns the pairs of a variable of the form "name=value,name=value", in which values are percent-encoded.
func (e *environment) pairs(variable string) map[string]string {
	pairs := map[string]string{}
	for pair := range strings.SplitSeq(e.getenv(variable), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !found || name == "" || err != nil {
			e.fail(variable, "want name=value pairs, with commas between them and %%-encoded values")
			continue
		}
		pairs[name] = value
	}
	return pairs
}

func (e *environment) number(variable string) int {
	text := e.getenv(variable)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		e.fail(variable, "%q: want a number above 0", text)
	}
	return n
}

// boolean returns whether a variable is true.
func (e *environment) boolean(variable string) bool {
	switch text := e.getenv(variable); strings.ToLower(text) {
	case "true":
		return true
	case "", "false":
	default:
		e.fail(variable, "%q: want true or false", text)
	}
	return false
}

func (e *environment) milliseconds(variable string) time.Duration {
	return time.Duration(e.number(variable)) * time.Millisecond
}

// drop returns the share of runs that the sampler drops. A span of ours has no parent, so the samplers that are based on
// the parent decide as those for roots.
func (e *environment) drop() float64 {
	sampler := e.getenv(tracesSampler)
	switch strings.TrimPrefix(sampler, "parentbased_") {
	case "", "always_on":
		return 0
	case "always_off":
		return 1
	case "traceidratio":
	default:
		e.fail(tracesSampler, "the sampler %q is not known; want always_on, always_off or traceidratio", sampler)
		return 0
	}
	text := e.getenv(tracesSamplerArg)
	if text == "" {
		return 0
	}
	share, err := strconv.ParseFloat(text, 64)
	if err != nil || !(share >= 0 && share <= 1) {
		e.fail(tracesSamplerArg, "%q: want a share between 0 and 1", text)
	}
	return 1 - share
}

// tls returns the certificates that the variables name, or nil if they name none.
func (e *environment) tls() *tls.Config {
	authority, certificate, key := e.either("CERTIFICATE"), e.either("CLIENT_CERTIFICATE"), e.either("CLIENT_KEY")
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := e.getenv(authority); file != "" {
		pem, err := os.ReadFile(file)
		if c.RootCAs = x509.NewCertPool(); err == nil && !c.RootCAs.AppendCertsFromPEM(pem) {
			err = errors.New(file + " has no certificate in PEM")
		}
		if err != nil {
			e.fail(authority, "%w", err)
		}
	}
	if file := e.getenv(certificate); file != "" || e.getenv(key) != "" {
		pair, err := tls.LoadX509KeyPair(file, e.getenv(key))
		if err != nil {
			e.fail(certificate, "%w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if c.RootCAs == nil && c.Certificates == nil {
		return nil
	}
	return c
}
