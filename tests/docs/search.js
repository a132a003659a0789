// Asks the site's index as its own search does: node search.js LUNR INDEX QUERIES
const fs = require("fs");
const lunr = require(process.argv[2]);
const index = JSON.parse(fs.readFileSync(process.argv[3]));
const queries = JSON.parse(process.argv[4]);
const docs = Object.fromEntries(index.docs.map((doc) => [doc.location, doc]));
const built = lunr(function () {
  for (const step of ["trimmer", "stopWordFilter", "stemmer"]) {
    if (index.config.pipeline.includes(step)) continue;
    this.pipeline.remove(lunr[step]);
    this.searchPipeline.remove(lunr[step]);
  }
  this.ref("location");
  for (const [field, options] of Object.entries(index.config.fields)) this.field(field, options);
  for (const doc of index.docs) this.add(doc, { boost: doc.boost || 1 });
});

function pagesOf(query) {
  const words = query.toLowerCase().split(/\s+/);
  const hits = built.query((clause) => {
    for (const word of words) clause.term(word, { wildcard: lunr.Query.wildcard.TRAILING });
  });
  const scores = {};
  for (const { ref, score, matchData } of hits) {
    const terms = Object.keys(matchData.metadata);
    const all = words.every((word) => terms.some((term) => term.startsWith(word)));
    const boost = Number(!ref.includes("#")) + Number(all);
    const page = ref.split("#")[0];
    scores[page] = Math.max(scores[page] || 0, score * (1 + boost ** 2));
  }
  return Object.keys(scores).sort((one, other) => scores[other] - scores[one]);
}

console.log(JSON.stringify(Object.fromEntries(queries.map((query) => [query, pagesOf(query).slice(0, 3)]))));
