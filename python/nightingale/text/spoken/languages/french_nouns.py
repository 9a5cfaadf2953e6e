"""The gender of French nouns: by their ending, with those that differ from it."""

import re

_MASCULINE_ENDINGS = (
    "age|isme|aire|[èé]me|[oô]me|mètre|[cdgv]re|ège|cle|phe|gramme|scope|phone|drome|naute|"
    "cide|vore|lithe|logue"
)
_MASCULINE = frozenset(
    """
    acte adverbe alphabet ancêtre ange âne angle antidote antre arbitre arbre archipel arôme artiste
    asile astre athlète automne axe bagne balustre baptême barde beurre bronze buffle cadavre cadre
    câble café calibre calme camarade cancre caprice capitaine caractère casque cèdre centre cerne
    châle changement chantre charme chef chêne chiffre chèque chœur cidre cierge cigare
    cimetière cinéma cirque citoyen cloître code coffre collègue colosse combustible
    comité commerce comte comté compte concierge concombre cône conte contraste convive costume
    côté coude couple couvercle crabe crâne cratère crépuscule crime crocodile cube cuivre culte
    cycle cygne décembre défilé degré délire déluge dentiste département député désastre désordre
    détective diable dialogue diamètre dictionnaire dièse dimanche dimètre diplôme disque divorce
    dogme domaine domestique domicile double doute drame échange édifice élève emblème employé
    empire enthousiasme équilibre esclave été évêque exemple exercice exode fantôme fascicule
    faste filtre fleuve foie fossé frère fromage génie gendarme gendre genre geste gîte glaive
    globe golfe gouffre grade graphique groupe guide gymnase héritage homme hôpital hygiène
    immeuble incendie indice insecte insigne intermède interprète intervalle inventaire itinéraire
    jeûne journaliste juge kilo kilomètre kiosque labyrinthe lange légume libraire lièvre linge
    liquide litre livre lobe lustre luxe lycée maître magazine maire malaise mâle manque marbre
    masque massacre médecin mélange membre mensonge mercure mérite merle meuble meurtre
    microbe mille ministre ministère miracle modèle monastère monde monopole monstre monticule
    monument mortier moule musée muscle mystère mythe navire neutre nombre obstacle octobre ogre
    ongle orage orchestre ordre organe organisme orgue ouvrage oxygène pape papillon paradoxe
    parallélogramme parapluie parasite parlementaire patrimoine peigne peintre péage père
    permis peuple phare phénomène piège pilote pique-nique pirate planisphère pli poème poète poivre
    pôle porche portefeuille pétale pétrole précipice prêtre prétexte prince principe privilège
    problème procédé programme projectile pronostic prophète proverbe pupitre quatre quotidien
    rapace râle recueil refuge régime registre remède renne reproche reptile reste rêve rhume rire
    risque rite rôle royaume rythme sable sabre sacrifice satellite scandale scrupule secondaire
    seigle septembre service sexe siège siècle signe silence singe site socle solde sommaire
    sommet songe sou souffle soufre sourire spectacle spectre square squelette stade statut
    store style suicide sucre supplice symbole symptôme téléphone télescope temple terme terre-plein
    tertre texte théâtre thé théorème thermomètre thème tigre timbre titre tome tonnerre torse
    traité traître trèfle triangle triomphe trône trophée trouble tube tumulte type uniforme
    univers vacarme vampire vase véhicule ventre verbe verre vertige vestibule vice vide vignoble
    vinaigre virage vocabulaire vote zèle zèbre article bénévole bilingue centime centimètre
    chapitre chômage client collège commissaire communiqué complice compromis conjoint dinosaure
    disciple document domino euro gigaoctet gramme hectare hectolitre jeune journal kilogramme
    locataire mégaoctet mètre millimètre million milliard modem mégahertz octet pourboire
    propriétaire quart touriste volontaire volume voyage athée abonné accusé bébé blessé
    délégué diplômé invité licencié marié noyé pâté rescapé retraité réfugié salarié tué
    territoire contrôle règne répertoire murmure champagne abîme prodige météore carrosse trente
    promontoire gentilhomme bonhomme poêle vélo degré carré cornichon pneu tigre modèle exemplaire
    ordinateur
    """.split()
)
_FEMININE = """
    abeille affaire alarme arme armoire baignoire balançoire bouilloire brosse carte catastrophe
    chair chaleur
    chambre chanson chose cible clameur clé clef comparaison couleur cour croix date dent dictature
    dette douche douleur eau écharpe église enceinte époque équipe erreur étable étoile étude façon
    faim faveur femme fenêtre fièvre fin flamme fleur foi fois forêt fourmi fraîcheur framboise
    fraude
    garde-robe gamme gare gloire glu gomme grandeur guerre guitare histoire hauteur honte horreur
    humeur île image jambe jument largeur leçon lettre liqueur ligne loi longueur lueur lumière
    lune main maison maman manœuvre marque mémoire mer mère mesure moisson montagne mort moto nage
    nation noix nuit odeur œuvre ombre opinion page paix pâleur paire panne paroi part patinoire
    peau
    perdrix période peur photo phrase piste plage plate-forme plume pomme porte poire prison
    profondeur
    pudeur rage raison rame rançon réunion rive rivière route rue rumeur saison salle saveur semaine
    soif sœur somme souris sorte sueur surface table tâche tempête terreur terre toux trace trahison
    tribu tumeur valeur vapeur vérité vertu victime victoire vigueur ville vis virgule vitesse
    voiture voix zone cage rage nage radio pub télé moitié amitié pitié clarinette campagne vigne
    bible liste veste peste perte sirène scène chèvre lèvre règle cuillère semelle cathédrale
    montre vitre fable minute langue vague bague blague fatigue seconde bombe tombe douzaine
    lame âme dame rame cime rime rose chaussette goutte flûte cellule bulle pilule molécule
    formule virgule canicule cravate date pâte patate tomate facture licorne corne borne
    foudre poudre soeur fureur blancheur stupeur laideur lenteur cargaison rougeur plupart caserne
    citerne lanterne taverne gourde corde horde
    """.split()


def _plural(noun: str) -> tuple[str, str]:
    return noun, noun if noun.endswith(("s", "x")) else f"{noun}s"


FEMININE = re.compile(
    rf"(?!.*(?:{_MASCULINE_ENDINGS})s?\Z).*(?:e|[tsxgn]ion|té|tié|ée)s?|"
    + "|".join(form for noun in sorted(set(_FEMININE)) for form in _plural(noun))
)
MASCULINE = frozenset(form for noun in _MASCULINE - set(_FEMININE) for form in _plural(noun))
