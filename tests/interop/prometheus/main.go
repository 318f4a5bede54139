// Scrapes a URL in both formats as Prometheus does, and checks the responses with Prometheus' own parsers and linter.
// Or checks the alert rules and the dashboard with Prometheus' own parsers.
//
//	prometheus URL
//	prometheus RULES.yaml DASHBOARD.json
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sort"
	"strings"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// The Accept header that Prometheus sends for each of its `scrape_protocols`, and the content type that it must
// receive.
var formats = []struct{ name, accept, contentType string }{
	{"text", "text/plain;version=0.0.4;q=0.6,*/*;q=0.2", "text/plain; version=0.0.4"},
	{"openmetrics", "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.2", "application/openmetrics-text; version=1.0.0"},
}

func main() {
	if len(os.Args) == 3 {
		queries(os.Args[1], os.Args[2])
		return
	}
	for _, format := range formats {
		body, contentType := scrape(os.Args[1], format.accept)
		if !strings.HasPrefix(contentType, format.contentType) {
			log.Fatalf("%s: the content type is %q", format.name, contentType)
		}
		series, err := parse(body, contentType)
		if err != nil {
			log.Fatalf("%s: %v", format.name, err)
		}
		for _, name := range series {
			fmt.Println(format.name, name)
		}
		if format.name == "text" {
			check(body)
		}
	}
}

func scrape(url, accept string) ([]byte, string) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		log.Fatalf("%s: %v", response.Status, err)
	}
	return body, response.Header.Get("Content-Type")
}

// parse parses the body with the parser of the scrape loop, and returns the names of all series.
func parse(body []byte, contentType string) ([]string, error) {
	parser, err := textparse.New(body, contentType, "", false, false, false, labels.NewSymbolTable())
	if err != nil {
		return nil, err
	}
	names, seen := map[string]bool{}, map[string]bool{}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var series labels.Labels
		parser.Labels(&series)
		if seen[series.String()] {
			return nil, fmt.Errorf("%s is there twice", series)
		}
		seen[series.String()] = true
		names[series.Get(model.MetricNameLabel)] = true
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	sort.Strings(sorted)
	return sorted, nil
}

// check parses the body with the parser of the client library, which supports metric families, and lints it as
// `promtool check metrics` does.
func check(body []byte) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		log.Fatalf("expfmt: %v", err)
	}
	for name, family := range families {
		fmt.Println("type", name, strings.ToLower(family.GetType().String()))
	}
	problems, err := promlint.New(bytes.NewReader(body)).Lint()
	if err != nil {
		log.Fatalf("promlint: %v", err)
	}
	for _, problem := range problems {
		fmt.Println("lint", problem.Metric, problem.Text)
	}
}
